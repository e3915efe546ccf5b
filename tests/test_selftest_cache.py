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
from agent.brains.failures import Kind, ModelFailed
from agent.brains.selftest import examine
from agent.brains.selftest_cache import KEPT_POOR_S, KEPT_S, Cache
from tests.lab.stub_model import Reply, refused
from tests.model_client import endpoint as made_for
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


@pytest.mark.parametrize(
    ("dialect", "kept_s"),
    [
        (Dialect(context_tokens=32_768), KEPT_S),
        (Dialect(context_tokens=32_768, native_tools=False), KEPT_POOR_S),
        (Dialect(context_tokens=0), KEPT_POOR_S),
        (Dialect(context_tokens=0, native_tools=False), KEPT_POOR_S),
    ],
)
@pytest.mark.parametrize("over", [-60, 60])
def test_what_may_soon_be_better_is_kept_for_an_hour(
    dialect: Dialect, kept_s: int, over: int, tmp_path: Path
) -> None:
    cache = Cache(tmp_path, Address("http://h:1/v1", "m"))
    cache.save(dialect)
    spoil(at=time.time() - kept_s - over)(cache.path)
    assert cache.load() == (None if over > 0 else dialect)


# A server that is known


def known(folder: Path, url: str) -> Dialect:
    dialect = Dialect(context_tokens=32_768)
    assert Cache(folder, Address(url, "stub")).save(dialect) == ""
    return dialect


@pytest.mark.parametrize(
    "listed",
    [
        {"data": [{"id": "stub"}]},
        {"odd": True},
        (200, {}, "[" * 9999),
        (200, {}, "<html>"),
        refused(404, "Not Found"),
        refused(400, "no"),
        refused(429, "slow"),
        refused(500, "broken"),
        (308, {"Location": "https://e.example/"}, ""),
    ],
)
def test_a_known_server_is_looked_at_and_not_asked(listed: Any, tmp_path: Path) -> None:
    model = Model()
    with served(model, routes={"/v1/models": listed}) as (stub, _), made_for(stub.url) as endpoint:
        dialect = known(tmp_path, stub.url)
        assert examine(endpoint, cache=tmp_path) == dialect
        assert [(look.method, look.path) for look in stub.looked] == [("GET", "/v1/models")]
        assert stub.asked == []


def test_a_known_server_that_does_not_come_to_answer_is_told_before_a_run(tmp_path: Path) -> None:
    late = refused(504, "Gateway Timeout")
    with served(Model(), routes={"/v1/models": late}) as (stub, _), made_for(stub.url) as endpoint:
        known(tmp_path, stub.url)
        with pytest.raises(ModelFailed) as caught:
            examine(endpoint, cache=tmp_path)
        assert caught.value.failure.kind is Kind.TIMEOUT
        assert stub.asked == []


@pytest.mark.parametrize("listed", [refused(401, "Incorrect API key"), refused(403, "no")])
def test_a_key_that_may_not_list_models_is_tried_on_a_request(
    listed: Reply, tmp_path: Path
) -> None:
    """It may be one that may chat; where it is not, the first request says so."""
    with (
        served(Model(), routes={"/v1/models": listed}) as (stub, _),
        made_for(stub.url) as endpoint,
    ):
        known(tmp_path, stub.url)
        assert examine(endpoint, cache=tmp_path).native_tools
        assert len(stub.asked) >= 3


def test_a_known_server_that_is_gone_is_told_before_a_run(tmp_path: Path) -> None:
    with served(Model()) as (stub, _):
        known(tmp_path, stub.url)
    with made_for(stub.url) as endpoint, pytest.raises(ModelFailed, match="is the server") as e:
        examine(endpoint, cache=tmp_path)
    assert e.value.failure.kind is Kind.NETWORK


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
