"""The scripted connector."""

from __future__ import annotations

import pytest

from tools.command import Command, Ending, Result
from tools.connectors.base import Connector
from tools.connectors.scripted import Scripted
from tools.errors import ConnectionFailed

HELLO = Result(Ending.EXITED, code=0, stdout="hello\n")
BYE = Result(Ending.EXITED, code=1, stderr="bye\n")


def test_scripted_mapping_answers_in_any_order() -> None:
    told: list[tuple[str, str]] = []
    target: Connector = Scripted({("echo", "hello"): HELLO, ("false",): BYE})
    for argv, answer in ((("false",), BYE), (("echo", "hello"), HELLO), (("false",), BYE)):
        assert target.run(Command.of(*argv), lambda *piece: told.append(piece)) is answer
    assert told == [("stderr", "bye\n"), ("stdout", "hello\n"), ("stderr", "bye\n")]
    with pytest.raises(ConnectionFailed) as caught:
        target.run(Command.of("echo", "hello you"))
    assert "`echo 'hello you'`" in str(caught.value)
    assert "nearest known command is `echo hello`" in str(caught.value)


def test_scripted_queue_keeps_its_order() -> None:
    target = Scripted([(("a",), HELLO), (("b",), BYE)], name="spark-1")
    with pytest.raises(ConnectionFailed, match=r"spark-1: .*`b`; the next recorded command is `a`"):
        target.run(Command.of("b"))
    assert target.run(Command.of("a")) is HELLO
    assert target.left == (("b",),)
    assert target.run(Command.of("b")) is BYE
    with pytest.raises(ConnectionFailed, match="all recorded answers are used up"):
        target.run(Command.of("b"))
    assert [command.argv for command in target.asked] == [("b",), ("a",), ("b",), ("b",)]
