"""What a folder holds of a model's weights."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.environments import see
from tests.hub_host import ONE, TWO, WHOLE, shard
from tools.weights import LocalWeights, WeightsState

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4999999\n"


def put(folder: Path, files: Mapping[str, bytes | None]) -> Path:
    for name, data in files.items():
        if data is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    return folder


def look(folder: Path) -> LocalWeights:
    seen: LocalWeights = see(WeightsState(), folder=str(folder))
    return seen


def test_a_whole_model(tmp_path: Path) -> None:
    seen = look(put(tmp_path, WHOLE))
    assert (seen.complete, seen.problem) == (True, "")
    assert (seen.shards, seen.present, seen.bytes_expected) == (2, 2, 300)
    assert seen.bytes_present == len(WHOLE[ONE]) + len(WHOLE[TWO])
    assert seen.free_mib > 0


def test_one_file_without_an_index(tmp_path: Path) -> None:
    files = {"config.json": b"{}", "tokenizer.model": b"x", "model.safetensors": shard(10)}
    seen = look(put(tmp_path, files))
    assert (seen.complete, seen.index, seen.shards) == (True, False, 1)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("config.json", None, "config.json cannot be read: No such file or directory"),
        ("config.json", b"{", "config.json is no JSON"),
        ("tokenizer.json", None, "there is no tokenizer"),
        (ONE, None, "1 of 2 weight files missing"),
        (ONE, b"", f"{ONE} is not whole: empty"),
        (ONE, WHOLE[ONE][:-1], f"{ONE} is not whole: shorter than its header says"),
        (ONE, WHOLE[ONE] + b"x", f"{ONE} is not whole: longer than its header says"),
        (ONE, WHOLE[ONE][:20], f"{ONE} is not whole: ends within its header"),
        (ONE, b"\0" * 5, f"{ONE} is not whole: shorter than any header"),
        (ONE, b"<!DOCTYPE html>" * 9, f"{ONE} is not whole: does not begin with a safetensors"),
        (
            ONE,
            struct.pack("<Q", 9) + b"[1, 2, 3]",
            f"{ONE} is not whole: its header cannot be read",
        ),
        (TWO, POINTER, f"{TWO} is not whole: a Git LFS pointer"),
        ("model.safetensors.index.json", b"{}", "has no weight_map"),
        ("model.safetensors.index.json", None, "there is neither"),
    ],
)
def test_what_is_wrong(tmp_path: Path, name: str, data: bytes | None, problem: str) -> None:
    seen = look(put(tmp_path, {**WHOLE, name: data}))
    assert not seen.complete
    assert problem in seen.problem
    assert problem in seen.headline()


def test_a_cache_of_links(tmp_path: Path) -> None:
    blobs = put(tmp_path / "models--org--m" / "blobs", {"abc.incomplete": b"x", **WHOLE})
    snapshot = tmp_path / "models--org--m" / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)
    for name in WHOLE:
        (snapshot / name).symlink_to(blobs / name)
    assert (look(snapshot).complete, look(snapshot).incomplete) == (True, ["abc.incomplete"])
    (blobs / ONE).unlink()
    assert look(snapshot).missing == [ONE]


def test_another_format_is_named(tmp_path: Path) -> None:
    seen = look(put(tmp_path, {"config.json": b"{}", "model-q4.gguf": b"GGUF"}))
    assert "but there is model-q4.gguf" in seen.problem


def test_no_folder(tmp_path: Path) -> None:
    seen = look(tmp_path / "gone" / "deeper")
    assert (seen.folder_found, seen.complete) == (False, False)
    assert seen.free_mib > 0
