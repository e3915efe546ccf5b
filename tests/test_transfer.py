"""Copies between places of every kind: what is kept, what is left alone, and what is refused."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker_host import container, use_engine
from tests.lab.sshd import server
from tests.ssh_host import connector
from tests.test_probes import older_pythons
from tests.transfer_desk import (
    at,
    big_file,
    busybox,
    copied,
    coreutils,
    here,
    interrupt_at,
    odd_tree,
    parts,
    seen,
)
from tools.connectors.base import Connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.transfer_rows import Manifest, name_of, word
from tools.transfer_side import Place

Make = Callable[[Path], Connector]
MAKES: dict[str, Make] = {
    "python": lambda folder: Local(),
    "coreutils": lambda folder: coreutils(folder),
    "busybox": lambda folder: busybox(folder),
}


@pytest.fixture
def kinds(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Connector, Connector]:
    """The two places that a test's parameter names."""
    one, other = request.param.split("-")
    return MAKES[one](tmp_path / "programs of one"), MAKES[other](tmp_path / "programs of other")


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[Connector]:
    with server(tmp_path / "sshd") as sshd:
        host = connector(sshd)
        yield host
        host.close()


EACH = ["python-python", "python-coreutils", "coreutils-python", "busybox-busybox"]
each = pytest.mark.parametrize("kinds", EACH, indirect=True)


@each
def test_a_folder_comes_as_it_is_and_a_second_time_nothing_is_sent(
    tmp_path: Path, kinds: tuple[Connector, Connector]
) -> None:
    """Row 114: no name is an option, a pattern, or a command."""
    tree, there = odd_tree(tmp_path / "from"), tmp_path / "made" / "the copy"
    sent = copied(at(kinds[0], tree), at(kinds[1], there))
    rough = kinds[1].__class__ is not Local
    assert seen(there, rough) == seen(tree, rough)
    assert (sent.sent_files, sent.same_files, sent.is_new) == (sent.files, 0, True)
    again = copied(at(kinds[0], tree), at(kinds[1], there))
    assert (again.sent_files, again.same_files, again.is_new) == (0, sent.files, False)
    assert not list(tmp_path.rglob("owned"))


@each
def test_a_cut_file_goes_on_where_its_first_bytes_are_the_sources(
    tmp_path: Path, kinds: tuple[Connector, Connector]
) -> None:
    data = big_file(tmp_path / "data", 3)

    with pytest.raises(KeyboardInterrupt):
        copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"), tell=interrupt_at(tmp_path))
    whole = data.read_bytes()
    (part,) = parts(tmp_path)
    part.write_bytes(whole[: 2 << 20] + b"torn")
    done = copied(at(kinds[0], data), at(kinds[1], tmp_path / "copy"))
    assert done.resumed_bytes == 2 << 20
    assert (tmp_path / "copy").read_bytes() == whole
    assert not parts(tmp_path)


def test_over_ssh_both_ways(tmp_path: Path, spark: Connector) -> None:
    tree = odd_tree(tmp_path / "from")
    copied(here(tree), at(spark, tmp_path / "there"))
    copied(at(spark, tmp_path / "there"), here(tmp_path / "back"))
    assert seen(tmp_path / "back") == seen(tree)


def test_into_a_container_and_out_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)
    tree = odd_tree(tmp_path / "from")
    with container("sleep", "600") as name:
        inside = Docker(name, Local())
        copied(here(tree), at(inside, "/srv/the copy"))
        copied(at(inside, "/srv/the copy"), here(tmp_path / "back"))
    assert seen(tmp_path / "back") == seen(tree)


@each
def test_links_that_leave_the_folder_become_what_they_lead_to(
    tmp_path: Path, kinds: tuple[Connector, Connector]
) -> None:
    """A hub's cache: the files of a snapshot are links to blobs beside it."""
    blobs, snapshot = tmp_path / "hub/blobs", tmp_path / "hub/snapshots/1a2b"
    for folder in (blobs, snapshot):
        folder.mkdir(parents=True)
    (blobs / "77aa").write_text("weights")
    (snapshot / "model.safetensors").symlink_to("../../blobs/77aa")
    (snapshot / "same").symlink_to("model.safetensors")
    copied(at(kinds[0], snapshot), at(kinds[1], tmp_path / "alone"))
    copied(at(kinds[0], tmp_path / "hub"), at(kinds[1], tmp_path / "whole"))
    alone, whole = tmp_path / "alone", tmp_path / "whole/snapshots/1a2b"
    assert not (alone / "model.safetensors").is_symlink()
    assert (alone / "model.safetensors").read_text() == "weights"
    assert (whole / "model.safetensors").readlink() == Path("../../blobs/77aa")
    assert (whole / "same").readlink() == Path("model.safetensors")


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "a pipe")


def unix_socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(folder / "sock"))


def dangling(folder: Path) -> None:
    (folder / "nowhere").symlink_to("missing")


def link_out(folder: Path) -> None:
    (folder / "etc").symlink_to("/etc")


REFUSED = {"a pipe": fifo, "sock": unix_socket, "nowhere": dangling, "etc": link_out}


@pytest.mark.parametrize("name", REFUSED)
@each
def test_what_cannot_be_copied_is_named_before_anything_is_sent(
    tmp_path: Path,
    kinds: tuple[Connector, Connector],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = tmp_path / "from"
    tree.mkdir()
    (tree / "good").write_text("good")
    REFUSED[name](tree)
    with pytest.raises(ToolFailed, match=rf"cannot be copied: {name} \(.*nothing was copied"):
        copied(at(kinds[0], tree), at(kinds[1], tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


@each
def test_other_content_is_refused_or_set_aside_and_never_lost(
    tmp_path: Path, kinds: tuple[Connector, Connector]
) -> None:
    source, to = tmp_path / "from", tmp_path / "to"
    for folder, text in ((source, "newer"), (to, "older")):
        folder.mkdir()
        (folder / "config.json").write_text(text)
        os.utime(folder / "config.json", (len(folder.name), len(folder.name)))
    with pytest.raises(ToolFailed, match=r"config\.json there with other content"):
        copied(at(kinds[0], source), at(kinds[1], to))
    assert (to / "config.json").read_text() == "older"
    done = copied(at(kinds[0], source), at(kinds[1], to), replace=True, tag="run-7")
    assert done.replaced == ["config.json"]
    assert (to / "config.json").read_text() == "newer"
    assert (to / "config.json.before-run-7").read_text() == "older"


@each
def test_the_same_content_with_another_time_is_not_sent_again(
    tmp_path: Path, kinds: tuple[Connector, Connector]
) -> None:
    for name, when in (("from", 1_000_000_000), ("to", 1_100_000_000)):
        (tmp_path / name).write_text("the same")
        os.utime(tmp_path / name, (when, when))
    done = copied(at(kinds[0], tmp_path / "from"), at(kinds[1], tmp_path / "to"))
    assert (done.sent_files, done.same_files) == (0, 1)
    assert (tmp_path / "to").stat().st_mtime == 1_000_000_000


@each
def test_a_link_at_the_target_leads_nothing_out_of_it(
    tmp_path: Path, kinds: tuple[Connector, Connector]
) -> None:
    tree, to, outside = tmp_path / "from", tmp_path / "to", tmp_path / "outside"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/file").write_text("data")
    to.mkdir()
    outside.mkdir()
    (to / "sub").symlink_to(outside)
    with pytest.raises(ToolFailed, match="leads out of the folder"):
        copied(at(kinds[0], tree), at(kinds[1], to))
    assert not list(outside.iterdir())


@pytest.mark.parametrize("path", [b"../up", b"/etc/passwd", b"a/../../b", b"", b"a//b", b"nul\0"])
def test_a_source_that_names_what_lies_elsewhere_is_refused(path: bytes) -> None:
    with pytest.raises(ToolFailed, match="names what lies elsewhere"):
        Manifest(is_folder=True).take(["file", word(path), "1", "1", "644"])


def test_a_list_with_a_gap_is_refused() -> None:
    rows = Manifest()
    rows.take(["root", "dir"])
    rows.take(["file", "a", "1", "1", "644"])
    with pytest.raises(ToolFailed, match="gaps"):
        rows.take(["listed", "2"])


def test_every_byte_of_a_name_survives_as_a_word() -> None:
    name = bytes(range(1, 256))
    assert name_of(word(name)) == name
    assert not set(word(name)) & set(" \n\t\r")


@pytest.mark.parametrize("path", ["missing", "missing/deeper"])
@each
def test_a_source_that_is_not_there(
    tmp_path: Path, kinds: tuple[Connector, Connector], path: str
) -> None:
    with pytest.raises(ToolFailed, match="no such file or folder"):
        copied(at(kinds[0], tmp_path / path), at(kinds[1], tmp_path / "copy"))


def test_a_kind_of_place_without_streams_says_so(tmp_path: Path) -> None:
    class Other:
        name = "odd"

    with pytest.raises(ToolFailed, match="odd: files cannot be copied"):
        copied(Place(Other(), "/x"), here(tmp_path / "y"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "python"), older_pythons())
def test_any_python_of_a_host(tmp_path: Path, version: str, python: str) -> None:
    """One that is too old leaves it to the host's shell."""
    tree = odd_tree(tmp_path / "from")
    there = Place(Local(), str(tmp_path / "to"), python)
    copied(Place(Local(), str(tree), python), there, direct="127.0.0.1")
    assert seen(tmp_path / "to") == seen(tree)
