"""Words that the Docker tools share: names, labels, commands, and how a refusal reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from tools.base import CallContext, Subject
from tools.command import Command, Ending, Result, Via
from tools.errors import BadReply, ToolFailed

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REGISTRY = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
REFERENCE = rf"^(?:{_REGISTRY}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@sha256:[0-9a-f]{{64}})?$"
"""An image reference as Docker's grammar has it, or an image id; it never begins with a dash."""

ImageRef = Annotated[str, Field(pattern=REFERENCE, max_length=400)]
"""An image: ``name``, ``registry:5000/name:tag``, ``name@sha256:...`` or an id."""
ContainerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=128)]
"""A container's name or id."""
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

ENGINE = Subject(kind="engine", key="docker")
"""The target's Docker engine."""

CONTAINERS = Subject(kind="containers", key="all")
"""Which containers there are and run: touched by what starts or stops one."""

OUR_LABELS = ("bringup.run", "bringup.call", "bringup.content")
"""Labels by which our containers and images are known."""

_NOT_THERE = re.compile(
    r"no such (container|image|object|manifest)|manifest unknown|manifest for \S+ not found", re.I
)
_HINT = re.compile(r"^(Run|See) 'docker [a-z ]*--help'.*$", re.M)
_TROUBLES: tuple[tuple[str, str], ...] = (
    (r"\bdocker: (command )?not found", "there is no docker program on the target"),
    (
        r"permission denied.*(docker|socket)|docker.*permission denied",
        "this user may not use the Docker socket",
    ),
    (
        r"cannot connect to the docker daemon|is the docker daemon running|error during connect"
        r"|failed to connect to the docker api",
        "the Docker daemon does not run, or is not reached",
    ),
    (
        r"internal server error|request returned \S+ for API route|server error for http",
        "the Docker engine answers with an error of its own",
    ),
)


def image_subject(reference: str) -> Subject:
    """Return an image as a subject."""
    return Subject(kind="image", key=reference)


def container_subject(name: str) -> Subject:
    """Return a container as a subject."""
    return Subject(kind="container", key=name)


def service_subject(name: str) -> Subject:
    """Return the service that a container is: something others may be using."""
    return Subject(kind="service", key=name)


def docker(
    *words: str,
    timeout_s: float = 30.0,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    via: Via = "process",
) -> Command:
    """Return ``docker WORDS``."""
    return Command.of("docker", *words, stdin=stdin, env=env, timeout_s=timeout_s, via=via)


def label_words(call: CallContext, **more: str) -> tuple[str, ...]:
    """Return ``--label`` options that say whose work it is; ``content="x"`` adds another.

    ``bringup.made`` tells a container of ours from one that a person has made of an image of ours:
    containers inherit the labels of their image.
    """
    labels = {"run": call.run_id, "call": call.call_id, "made": "container", **more}
    return tuple(word for key, value in labels.items() for word in labelled(key, value))


def labelled(key: str, value: str) -> tuple[str, str]:
    """Return the option that sets the label ``bringup.KEY``."""
    return "--label", f"bringup.{key}={value}"


def our_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Keep the labels that are ours."""
    found = (labels or {}).items()
    return {key: value for key, value in sorted(found) if key.startswith("bringup.")}


def is_missing(result: Result) -> bool:
    """Tell whether docker says that there is no such image or container."""
    failed = result.ending is Ending.EXITED and result.code != 0
    return failed and _NOT_THERE.search(result.stderr) is not None


def failure(what: str, result: Result) -> ToolFailed:
    """Return what to raise when docker did not do it, with docker's own words.

    Args:
        what: what was tried, such as ``docker info``.
        result: how it went.
    """
    if result.ending is Ending.TIMED_OUT:
        said = f": {result.tail}" if result.stderr.strip() else ""
        return ToolFailed(f"{what}: no answer within {result.duration_s:.0f} s{said}")
    words = _HINT.sub("", result.tail).strip()
    for sign, meaning in _TROUBLES:
        if re.search(sign, result.stderr, re.I):
            return ToolFailed(f"{meaning}: {what} ({result.how}): {words}")
    return ToolFailed(f"{what} failed ({result.how}): {words}")


def read_rows(what: str, result: Result) -> list[dict[str, Any]]:
    """Read the JSON objects that docker printed, one a line.

    Raises:
        ToolFailed: docker failed.
        BadReply: a line is something else.
    """
    if not result.ok:
        raise failure(what, result)
    rows = []
    for line in filter(None, map(str.strip, result.stdout.splitlines())):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise BadReply(f"{what}: a line of the answer is no JSON object: {line[:200]}")
        rows.append(row)
    return rows


def read_row(what: str, result: Result) -> dict[str, Any]:
    """Read the one JSON object that docker printed.

    Raises:
        ToolFailed: docker failed.
        BadReply: there is none, or there are several.
    """
    rows = read_rows(what, result)
    if len(rows) != 1:
        raise BadReply(f"{what}: one answer was asked for, and {len(rows)} came")
    return rows[0]


def engine_answers(stdout: str) -> list[dict[str, Any]]:
    """Read the answers that our engine client has kept; what is no JSON object is left out.

    Where they were too many, their middle is missing, and a line there may be broken.
    """
    rows = []
    for line in stdout.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def mib(size_bytes: float | int | None) -> int:
    """Return bytes as whole MiB."""
    return round((size_bytes or 0) / 2**20)
