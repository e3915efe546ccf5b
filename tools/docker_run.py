"""Programs in containers: variables and mounts, a limit of their own, and throw-away probes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tools.base import CallContext
from tools.command import Command, Ending, Result
from tools.docker import docker, failure, label_words

SCRATCH = "/tmp"  # noqa: S108 - a memory file system of the container's own
PROBE_ENV = {
    "HOME": SCRATCH,
    "XDG_CACHE_HOME": f"{SCRATCH}/.cache",
    "HF_HOME": f"{SCRATCH}/huggingface",
    "HF_HUB_OFFLINE": "1",
    "NVIDIA_VISIBLE_DEVICES": "void",
}
"""Variables of a probe container: caches in its own memory, no download, no GPU."""

LIMIT_GRACE_S = 2
"""How long after SIGTERM a program inside a container gets SIGKILL."""
CLIENT_GRACE_S = 15.0
"""How much longer than the program inside a container its client on the target may take."""

MountPath = Annotated[str, Field(pattern=r"^/[^,\"\x00\r\n]*$")]
"""An absolute path that can stand in a ``--mount`` option, which separates by commas."""

_CLIENT_READS = re.compile(r"PATH|HOME|LANG|LC_.*|LD_.*|DOCKER_.*|BUILDKIT_.*|.*_(proxy|PROXY)")
"""Variables that would change the docker program itself, were they in its environment."""

EXEC_FAILED = "OCI runtime exec failed: "
"""How docker begins to say, on its standard output, that a program in a container cannot run."""

_NOT_STARTED = re.compile(
    r"^(docker: )?(Error response from daemon|Cannot connect to the Docker daemon|permission denied"
    r"|Got permission denied|error during connect|failed to connect to the docker API)"
    r"|^Error: No such container|OCI runtime (exec|create) failed|\bdocker: (command )?not found",
    re.M | re.I,
)


class Mount(BaseModel):
    """A folder or file of the target, seen in a container."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: MountPath
    """Absolute path on the target; it has to exist."""
    target: MountPath
    """Absolute path in the container."""
    read_only: bool = True

    @property
    def words(self) -> tuple[str, str]:
        """The option that makes it."""
        end = ",readonly" if self.read_only else ""
        return "--mount", f"type=bind,source={self.source},target={self.target}{end}"


def env_words(env: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return how variables get into a container: ``--env`` options, and the client's environment.

    A variable travels as the client's own (``--env NAME``), so that no value stands in a process
    list; only what would change the client itself is written out.
    """
    words: list[str] = []
    carried: dict[str, str] = {}
    for name, value in env.items():
        if _CLIENT_READS.fullmatch(name):
            words += ["--env", f"{name}={value}"]
        else:
            words += ["--env", name]
            carried[name] = value
    return tuple(words), carried


def limited(argv: tuple[str, ...], limit_s: float) -> tuple[str, ...]:
    """Return a command that ends itself, for a place where nobody can end it from outside.

    ``timeout`` (coreutils, or busybox from 1.30 on) ends it with its process group. Killing the
    ``docker`` client would leave the program in the container running.
    """
    return ("timeout", "-k", str(LIMIT_GRACE_S), str(max(1, round(limit_s))), *argv)


def overran(result: Result, limit_s: float) -> bool:
    """Tell whether a command of ``limited`` was ended because its time was over."""
    ended = result.ending is Ending.EXITED and result.code in (124, 137)
    return ended and result.duration_s >= max(1, round(limit_s)) - 0.5


def probe_name(call: CallContext) -> str:
    """Return the name of a call's probe container."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", f"bringup-{call.run_id}-{call.call_id}")


def probe_command(
    call: CallContext, image: str, command: Command, mounts: Iterable[Mount] = ()
) -> Command:
    """Return a command that runs another one in a throw-away container of an image.

    The container pulls nothing, has no network, no GPU and a read-only file system but for
    ``/tmp``, which is memory of its own; mounts are read-only whatever they say. Standard input,
    variables and working folder are the command's. It goes away by itself: ``timeout`` is its first
    process, passes SIGTERM on and ends it when the command's time is over, even if the client was
    killed or the connection lost. ``ran`` tells how it went.

    Args:
        call: gives the labels and the name, see ``probe_name``.
        image: a reference; it has to be there.
        command: what to run; ``timeout_s`` holds inside the container.
        mounts: what it may read of the target.
    """
    set_words, carried = env_words(command.env)
    words = ["run", "--rm", "--interactive", "--name", probe_name(call), *label_words(call)]
    words += ["--pull", "never", "--network", "none", "--read-only"]
    words += ["--tmpfs", f"{SCRATCH}:rw,exec,nosuid,nodev", "--security-opt", "no-new-privileges"]
    for mount in mounts:
        words += mount.model_copy(update={"read_only": True}).words
    for name, value in PROBE_ENV.items():
        words += ["--env", f"{name}={value}"] if name not in command.env else []
    words += set_words
    if command.cwd is not None:
        words += ["--workdir", command.cwd]
    program, *rest = limited(command.argv, command.timeout_s)
    return docker(
        *words,
        "--entrypoint",
        program,
        image,
        *rest,
        stdin=command.stdin,
        env=carried,
        timeout_s=command.timeout_s + LIMIT_GRACE_S + CLIENT_GRACE_S,
    )


def ran(what: str, result: Result, limit_s: float) -> Result:
    """Return how a program in a container went, once docker's own failures are told apart.

    Args:
        what: what was tried, for the message.
        result: of ``docker run`` or ``docker exec`` with a command of ``limited``.
        limit_s: the limit that it had.

    Raises:
        ToolFailed: docker did not start it.
    """
    if overran(result, limit_s):
        return replace(result, ending=Ending.TIMED_OUT, code=None)
    said = _NOT_STARTED.search(result.stderr) or result.stdout.startswith(EXEC_FAILED)
    if result.ending is Ending.EXITED and result.code != 0 and said:
        raise failure(what, result)
    return result
