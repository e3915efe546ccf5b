"""One real Docker engine for the tests.

It is the one of ``BRINGUP_LAB_DOCKER``, else one of our own, else the machine's, where that runs.
Our own is Debian's ``dockerd``, started once as root and left running for the next test session
(``python -m tests.lab.engine stop`` ends it). Its images live in the lab's cache folder, its socket
and its process id under ``/run/bringup-lab``, which every session of this machine shares: two
engines would fight over the bridge and the firewall rules, so there is never a second one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
from docker.errors import DockerException

from tests.lab.need import need

SETTING = "BRINGUP_LAB_DOCKER"
"""The address of an engine to use instead of our own: ``unix:///var/run/docker.sock``."""
_GIVEN = os.environ.get(SETTING)
LAB = Path(os.environ.get("BRINGUP_LAB_DIR") or Path.home() / ".cache" / "bringup-lab")
"""Read at import, as the setting: the fixtures of the tests move HOME away afterwards."""
RUN = Path("/run/bringup-lab")
SOCKET = RUN / "docker.sock"
USUAL = Path("/var/run/docker.sock")
"""Where a machine's own engine listens; installing Debian's package may start that."""
LOG = LAB / "dockerd.log"
START_S = 60.0
STOP_S = 60.0


def engine() -> str:
    """Return the address of the lab's engine; start our own when none is running.

    Skips the test, or fails it where the whole lab is asked for, when there can be none.
    """
    if _GIVEN:
        need(_answers(_GIVEN), f"no Docker engine answers at {SETTING}={_GIVEN}")
        return _GIVEN
    address = f"unix://{SOCKET}"
    for path in (SOCKET, USUAL):
        if os.access(path, os.W_OK) and _answers(f"unix://{path}"):
            return f"unix://{path}"
    _need_own()
    with _lock():
        if _running() is None:
            others = _other_engines()
            need(not others, f"another dockerd runs here ({others}): set {SETTING} to its address")
            _start()
        _wait_for(address)
    return address


def client(timeout_s: float = 60.0) -> docker.APIClient:
    """Return a low-level client of the lab's engine; the caller closes it."""
    return docker.APIClient(base_url=engine(), version="auto", timeout=int(timeout_s))


def docker_command(*words: str) -> list[str]:
    """Return the words of a ``docker`` command to the lab's engine."""
    program = shutil.which("docker")
    need(program is not None, "docker is missing (apt-get install docker.io)")
    return [str(program), "--host", engine(), *words]


def docker_run(*words: str, timeout_s: float = 300.0, stdin: str | None = None) -> str:
    """Run a ``docker`` command on the lab's engine and return its stdout.

    Raises:
        RuntimeError: It failed; with what it printed.
    """
    argv = docker_command(*words)
    done = subprocess.run(
        argv, capture_output=True, text=True, input=stdin, timeout=timeout_s, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{argv}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"[-4000:])
    return done.stdout


def stop() -> bool:
    """End our own engine, its containers with it; return whether one was running."""
    with _lock():
        pid = _running()
        if pid is None:
            return False
        os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + STOP_S
        while _running() is not None or pid in _other_engines():  # its threads may outlive it
            if time.monotonic() > end:
                raise RuntimeError(f"dockerd {pid} did not end within {STOP_S:.0f} s, see {LOG}")
            time.sleep(0.1)
        return True


def _need_own() -> None:
    need(sys.platform == "linux", f"the lab's engine runs on Linux; or set {SETTING}")
    need(os.geteuid() == 0, f"the lab's engine needs root; or set {SETTING} to one you may use")
    need(_dockerd() is not None, "dockerd is missing (apt-get install docker.io)")


def _dockerd() -> str | None:
    return shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")


@contextmanager
def _lock() -> Iterator[None]:
    """Let one process at a time start or stop the engine."""
    RUN.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (RUN / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start() -> None:
    for stale in (SOCKET, RUN / "docker.pid"):
        stale.unlink(missing_ok=True)
    LAB.mkdir(parents=True, exist_ok=True)
    argv = [
        str(_dockerd()),
        *("--data-root", str(LAB / "docker"), "--exec-root", str(RUN / "exec")),
        *("--pidfile", str(RUN / "docker.pid"), "--host", f"unix://{SOCKET}"),
        *("--storage-driver", "overlay2"),
    ]
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
    with LOG.open("w") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PATH": path, "HOME": "/"},
        )
    # It is meant to outlive this process, so nobody waits for it: Python need not warn of that.
    process.returncode = 0
    record = {"pid": process.pid, "started": started(process.pid)}
    (RUN / "engine.json").write_text(json.dumps(record) + "\n")


def _wait_for(address: str) -> None:
    end = time.monotonic() + START_S
    while not _answers(address):
        if _running() is None or time.monotonic() > end:
            tail = LOG.read_text(errors="replace")[-1500:] if LOG.exists() else ""
            need(False, f"the lab's dockerd did not come up, see {LOG}:\n{tail}")
        time.sleep(0.1)


def _answers(address: str) -> bool:
    if not _listens(address):
        return False
    try:
        api = docker.APIClient(base_url=address, version="auto", timeout=10)
    except DockerException:
        return False
    try:
        return bool(api.ping())
    except (DockerException, OSError):
        return False
    finally:
        api.close()


def _listens(address: str) -> bool:
    """Tell whether somebody listens; docker's client leaves its socket open where nobody does."""
    if not address.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        try:
            link.connect(address.removeprefix("unix://"))
        except OSError:
            return False
    return True


def _running() -> int | None:
    """Return the process id of our engine, when it is still the one that we started."""
    try:
        record = json.loads((RUN / "engine.json").read_text())
    except (OSError, ValueError):
        return None
    pid = int(record["pid"])
    return pid if started(pid) == record["started"] else None


def started(pid: int) -> str | None:
    """Return when a process started, in clock ticks since boot; None for a dead one.

    With its number this names one process: numbers are given out again.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def _other_engines() -> list[int]:
    """Return the dockerds of this pid namespace: those inside containers have their own."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().strip() != "dockerd":
                continue
            same = (process / "ns/pid").readlink() == Path("/proc/self/ns/pid").readlink()
        except OSError:
            continue
        if same:
            found.append(int(process.name))
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["stop"]:
        stop()
    else:
        sys.stdout.write(engine() + "\n")
