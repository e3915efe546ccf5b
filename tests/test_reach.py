"""The probe that connects to other hosts' ports: real sockets, and answers that are none."""

from __future__ import annotations

import socket
import time

import pytest

from tools.command import Command, Ending, Result
from tools.connectors.local import Local
from tools.errors import BadReply, ToolFailed
from tools.reach import Place, Tried, reach_command, read_reach

MARKER = "@0123456789abcdef"


def tried(*places: Place, limit_s: float = 2.0, python: str = "python3") -> tuple[Tried, ...]:
    command = reach_command(MARKER, python, places, limit_s=limit_s)
    return read_reach(Local().run(command), MARKER, python, places)


def test_what_answers_and_what_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        with socket.create_server(("127.0.0.1", 0)) as other:
            closed = int(other.getsockname()[1])
        there, refused, odd = tried(("127.0.0.1", port), ("127.0.0.1", closed), ("nonsense", 1))
        stream, _ = server.accept()
        assert stream.recv(10) == b"", "nothing is sent"
        stream.close()
    assert (there.ok, there.source, there.error) == (True, "127.0.0.1", "")
    assert there.ms is not None
    assert (refused.ok, refused.error, refused.ms) == (False, "Connection refused", None)
    assert not odd.ok
    assert odd.error


def test_an_address_of_ipv6() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        (there,) = tried(("::1", int(server.getsockname()[1])))
    assert (there.ok, there.source) == (True, "::1")


def test_one_that_does_not_answer_takes_no_longer_than_allowed() -> None:
    """A server whose queue is full drops what comes: the kernel tries on for a minute."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        place = ("127.0.0.1", int(server.getsockname()[1]))
        held = [socket.socket() for _ in range(4)]
        for stream in held:
            stream.setblocking(False)
            stream.connect_ex(place)
        begun = time.monotonic()
        (late,) = tried(place, limit_s=0.5)
        for stream in held:
            stream.close()
    assert (late.ok, late.error) == (False, "no answer in time")
    assert time.monotonic() - begun < 8


def test_more_than_are_tried_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server:
        place = ("127.0.0.1", int(server.getsockname()[1]))
        assert sum(one.ok for one in tried(*[place] * 600)) == 600


def test_there_is_no_such_python() -> None:
    with pytest.raises(ToolFailed, match="python not found: /nowhere/python3"):
        tried(("127.0.0.1", 1), python="/nowhere/python3")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "gave no answer"),
        (f"{MARKER} no json", "another form"),
        (f'{MARKER} [{{"no": 1}}]', "another form"),
        (f"{MARKER} []", "0 answers to 1 questions"),
        ('@other [{"ok": true}]', "gave no answer"),
    ],
)
def test_answers_that_are_none(said: str, why: str) -> None:
    with pytest.raises(BadReply, match=why):
        read_reach(Result(Ending.EXITED, 0, stdout=said), MARKER, "python3", [("127.0.0.1", 1)])


def test_the_command_is_data() -> None:
    command = reach_command(MARKER, "/opt/python3", [("10.0.0.1", 22)])
    assert isinstance(command, Command)
    assert command.argv[:5] == ("/opt/python3", "-I", "-S", "-", MARKER)
