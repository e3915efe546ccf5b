"""Looking at this machine and its ports; and whatever a field holds, it reaches no shell."""

from __future__ import annotations

import getpass
import importlib
import os
import runpy
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tools.base import CallContext, Tool
from tools.connectors.local import Local
from tools.endpoint import ChatCheck, HttpCheck
from tools.errors import ToolFailed, UnknownTool
from tools.files import ReadFile
from tools.host import HostFacts
from tools.network import PortOwner
from tools.registry import TOOLS, find
from tools.search import Grep
from tools.shell import Shell

CALL = CallContext(run_id="r", call_id="c", marker="mark-51c9", host_dir="/nonexistent")
PY = sys.executable
PROBES = Path(__file__).parent.parent / "tools" / "probes"


def use(tool: Tool[Any, Any], **args: object) -> Any:
    """Run a tool on this machine and return its observation."""
    checked = tool.args_type.model_validate(args)
    return tool.parse(checked, CALL, Local().run(tool.command(checked, CALL)))


@contextmanager
def listener(code: str) -> Iterator[tuple[int, int]]:
    """Start a Python process that prints its port; give (pid, port)."""
    child = subprocess.Popen([PY, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield child.pid, int(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


SILENT = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(60)
"""
TALKING = """
import http.server
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


# --- the host


def test_host_facts_agree_with_the_system(tmp_path: Path) -> None:
    missing = tmp_path / "a" / "b c"
    facts = use(HostFacts(), python=PY, paths=(str(tmp_path), str(missing)))
    meminfo = Path("/proc/meminfo").read_text().split()
    assert facts.memory_mib == int(meminfo[1]) // 1024
    assert 0 < facts.memory_available_mib <= facts.memory_mib
    assert (facts.system, facts.machine, facts.kernel) == tuple(os.uname()[i] for i in (0, 4, 2))
    assert facts.cpu_count == len(os.sched_getaffinity(0))
    assert facts.user == getpass.getuser()
    here, later = facts.disks
    assert (here.exists, later.exists) == (True, False)
    assert here.total_mib == later.total_mib == shutil.disk_usage(tmp_path).total // 2**20
    assert here.filesystem == later.filesystem
    assert later.path == str(missing)


def test_the_file_system_of_a_path_is_that_of_its_own_mount() -> None:
    (proc,) = use(HostFacts(), python=PY, paths=("/proc/self",)).disks
    assert proc.filesystem == "proc"


def test_a_probe_is_shadowed_by_nothing_and_misled_by_no_banner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "platform.py").write_text("raise SystemExit('shadowed')")
    noisy = tmp_path / "python"
    noisy.write_text(f'#!/bin/sh\necho \'Welcome {{"system": 1}}\'\nexec {PY} "$@"\n')
    noisy.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert use(HostFacts(), python=str(noisy)).system == os.uname().sysname


# --- ports


@pytest.mark.parametrize(("code", "http"), [(SILENT, False), (TALKING, True)])
def test_a_held_port_names_its_owner_and_the_next_free_one(code: str, http: bool) -> None:
    free = free_port()
    with listener(code) as (pid, port):
        state = use(PortOwner(), python=PY, host="127.0.0.1", port=port, spare=(port, free))
        start = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert not state.free
    assert state.bind_error.startswith("EADDRINUSE")
    assert (state.owner_pid, state.owner_start) == (pid, start)
    assert state.owner_user == getpass.getuser()
    assert "-c" in state.owner_command
    assert state.answers_http is http
    assert state.next_free == free
    assert str(pid) in state.headline()


def test_a_free_port_is_free_also_after_its_server_has_just_ended() -> None:
    with listener(SILENT) as (_, port):
        socket.create_connection(("127.0.0.1", port)).close()
    state = use(PortOwner(), python=PY, port=port)
    assert (state.free, state.bind_error, state.owner_pid) == (True, None, None)


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    state = use(PortOwner(), python=PY, host="192.0.2.1", port=free_port())
    assert not state.free
    assert state.bind_error.startswith("EADDRNOTAVAIL")
    assert (state.owner_pid, state.answers_http) == (None, False)


@pytest.mark.skipif(shutil.which("lsof") is None, reason="lsof is not installed")
def test_without_proc_the_owner_comes_from_lsof() -> None:
    kept = list(sys.path)
    script = runpy.run_path(str(PROBES / "port.py"))
    sys.path[:] = kept  # the script takes out all but the standard library
    with listener(SILENT) as (pid, port):
        owner = script["owner_by_lsof"](port)
    assert (owner["pid"], owner["user"]) == (pid, getpass.getuser())
    assert "import socket" in owner["command"]
    assert script["owner_by_lsof"](port)["pid"] is None


# --- the registry


def test_every_tool_is_found_by_its_name_and_says_what_it_does() -> None:
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)
    for tool in TOOLS:
        assert find(tool.name) is tool
        assert tool.summary
        assert tool.args_type.model_json_schema()["type"] == "object"
        assert tool.observation_type.model_fields


def test_no_tool_that_is_declared_is_left_out() -> None:
    folder = Path(__file__).parent.parent / "tools"
    declared = set()
    for file in folder.glob("*.py"):
        module = importlib.import_module(f"tools.{file.stem}")
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Tool) and "args_type" in vars(item):
                declared.add(item)
    assert declared == {type(tool) for tool in TOOLS}


def test_an_unknown_tool_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(UnknownTool, match=r"no tool 'chat_chek'; did you mean chat_check"):
        find("chat_chek")
    with pytest.raises(UnknownTool, match="there are: connect, host_facts, "):
        find("zzzzzz")


# --- what is passed on is data

EVIL = ("; touch {0} #", "$(touch {0})", "`touch {0}`", "' ; touch {0} '", '" ; touch {0} "')
GOOD: list[tuple[Tool[Any, Any], dict[str, Any]]] = [
    (HostFacts(), {"python": PY, "paths": ["/etc"]}),
    (PortOwner(), {"python": PY, "host": "127.0.0.1", "port": 9}),
    (ReadFile(), {"python": PY, "path": "/etc/hostname"}),
    (Grep(), {"pattern": "x", "path": "/etc/hostname"}),
    (Shell(), {"command": "true", "cwd": "/etc"}),
    (HttpCheck(), {"python": PY, "url": "http://127.0.0.1:9/"}),
    (ChatCheck(), {"python": PY, "base_url": "http://127.0.0.1:9", "model": "m", "prompt": "p"}),
]


def poisoned(args: dict[str, Any], name: str, text: str) -> dict[str, Any]:
    """Put a text behind a field's good value."""
    value = args[name]
    return {**args, name: [value[0] + text] if isinstance(value, list) else f"{value}{text}"}


def test_no_field_reaches_a_shell(tmp_path: Path) -> None:
    pwned = tmp_path / "pwned"
    tried = 0
    for tool, args in GOOD:
        for name in args:
            if (tool.name, name) == ("shell", "command"):
                continue
            for evil in EVIL:
                with suppress(ValidationError, ToolFailed):
                    use(tool, **poisoned(args, name, evil.format(pwned)))
                tried += 1
                assert not pwned.exists(), (tool.name, name, evil)
    assert tried == 5 * 17 - 5 * 1
    use(Shell(), command=f"true {EVIL[0].format(pwned)}")
    assert pwned.exists()
