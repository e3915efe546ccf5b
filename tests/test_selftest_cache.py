"""What a self-test found is kept for a week, and only what can be used is taken."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.brains.address import Address
from agent.brains.dialect import Dialect
from agent.brains.selftest import examine
from agent.brains.selftest_cache import KEPT_S, Cache
from tests.model_server import (
    Model,
    examined,
    served,
)


def kept_file(folder: Path) -> Path:
    [file] = folder.iterdir()
    return file


def test_what_is_kept_is_the_owners_alone_and_whole(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "endpoints"
    dialect = examined(Model(), folder)
    assert stat.S_IMODE(kept_file(folder).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert json.loads(kept_file(folder).read_text())["dialect"]["native_tools"] is True
    assert dialect.notes == ()


def spoil(**changes: Any) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("{"),
        lambda file: file.write_bytes(b"\xff\xfe"),
        lambda file: file.write_text(""),
        lambda file: file.unlink(),
        spoil(version=0),
        spoil(at=time.time() - KEPT_S - 60),
        spoil(at=time.time() + 86_400),
        spoil(dialect={"native_tools": "perhaps"}),
        spoil(more=1),
    ],
)
def test_what_cannot_be_used_is_found_again(change: Callable[[Path], Any], tmp_path: Path) -> None:
    with served(Model()) as (stub, endpoint):
        dialect = examine(endpoint, cache=tmp_path)
        change(kept_file(tmp_path))
        assert examine(endpoint, cache=tmp_path) == dialect
        assert len(stub.asked) == 6
        assert examine(endpoint, cache=tmp_path) == dialect
        assert len(stub.asked) == 6


def test_each_model_and_address_has_its_own(tmp_path: Path) -> None:
    addresses = [Address(f"http://h{n % 2}:1/v1", f"m{n // 2}") for n in range(4)]
    for number, address in enumerate(addresses):
        assert Cache(tmp_path, address).save(Dialect(context_tokens=number)) == ""
    found = [Cache(tmp_path, address).load() for address in addresses]
    assert [dialect and dialect.context_tokens for dialect in found] == [0, 1, 2, 3]


def test_a_folder_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    dialect = examined(Model(), file / "endpoints")
    assert "cannot keep what was found" in dialect.notes[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_is_a_note(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    dialect = examined(Model(), tmp_path)
    tmp_path.chmod(0o700)
    assert "cannot keep what was found" in dialect.notes[0]
    assert list(tmp_path.iterdir()) == []
