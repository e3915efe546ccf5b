"""The tools about a target's connection, on this machine and on a real ssh host."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.lab.sshd import server
from tests.ssh_host import connector
from tools.base import CallContext, Risk
from tools.command import Command
from tools.connection import (
    Connect,
    ConnectArgs,
    Connection,
    TrustHostKey,
    TrustHostKeyArgs,
)
from tools.connectors.base import Connector
from tools.connectors.local import Local
from tools.errors import ToolFailed

CALL = CallContext("run-1", "call-1", "marker", "/srv/bringup")


def connect(target: Connector) -> Connection:
    tool, args = Connect(), ConnectArgs()
    return tool.parse(args, CALL, target.run(tool.command(args, CALL)))


def test_this_machine_needs_no_connection() -> None:
    seen = connect(Local())
    assert (seen.kind, seen.host_key, seen.home) == ("local", "known", str(Path.home()))
    assert seen.headline() == "this machine"
    result = Local().run(Command.of("trust-host-key", "x", via="connection"))
    assert (result.code, "no connection" in result.stderr) == (2, True)


@pytest.mark.lab
def test_an_ssh_host_is_seen_trusted_and_entered(tmp_path: Path) -> None:
    with server(tmp_path) as sshd:
        sshd.known_hosts.unlink()
        host = connector(sshd)
        seen = connect(host)
        assert seen.host_key == "unknown"
        assert f"host key not known yet, ssh-ed25519 {sshd.fingerprint()}" in seen.headline()
        tool = TrustHostKey()
        wrong = TrustHostKeyArgs(host=seen.host, fingerprint="SHA256:" + "A" * 43)
        with pytest.raises(ToolFailed, match="presents ssh-ed25519 SHA256:"):
            tool.parse(wrong, CALL, host.run(tool.command(wrong, CALL)))
        args = TrustHostKeyArgs(host=seen.host, fingerprint=seen.fingerprint)
        done = tool.parse(args, CALL, host.run(tool.command(args, CALL)))
        assert done.headline() == f"{sshd.fingerprint()} of 127.0.0.1 is known from now on"
        seen = connect(host)
        assert (seen.host_key, seen.shell_ok) == ("known", True)
        assert seen.headline() == f"{seen.user}@127.0.0.1 port {sshd.port}"
        host.close()


def test_trusting_is_a_change_of_that_key() -> None:
    fingerprint = "SHA256:" + "A" * 43
    args = TrustHostKeyArgs(host="spark", fingerprint=fingerprint)
    tool = TrustHostKey()
    assert tool.risk_of(args) is Risk.CHANGE
    touched = [str(it) for it in tool.subjects(args)]
    assert touched == [f"host_key {fingerprint}", "host host"], "it is connected to anew"
    assert "ssh-keygen -R spark" in tool.undo_text(args)
    command = tool.command(args, CALL)
    assert (command.argv, command.via) == (("trust-host-key", fingerprint), "connection")


@pytest.mark.parametrize("text", ["", "MD5:aa", "SHA256:short", "-oProxyCommand=x"])
def test_what_is_no_fingerprint(text: str) -> None:
    with pytest.raises(ValidationError):
        TrustHostKeyArgs(host="spark", fingerprint=text)
