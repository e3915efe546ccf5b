"""Build an image from a Dockerfile without a context."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, model_validator

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Ending, Result
from tools.docker import (
    ImageRef,
    docker,
    engine_answers,
    failure,
    image_subject,
    label_words,
)
from tools.errors import BadReply, ToolFailed
from tools.logs import earliest_error, plain
from tools.pip_messages import PipErrorKind, conflict_lines, decisive_lines, error_kind

TAIL_LINES = 30
MAX_WARNINGS = 10
_STEP = re.compile(r"^Step (\d+/\d+) : (.*)$", re.M)
_CACHED = "---> Using cache"
_WARNING = re.compile(r"^(?:WARNING: |\[Warning\] ).+$", re.M)
_CAUSES = re.compile(
    r"^.*(?:CERTIFICATE_VERIFY_FAILED|externally-managed-environment|No space left on device"
    r"|Retrying \(Retry\(|Temporary failure resolving|Could not resolve host).*$",
    re.M,
)
_PIP = re.compile(r"\bpip[0-9.]*\b")


class BuildImageArgs(Args):
    """What to build."""

    dockerfile: str = Field(
        min_length=1,
        max_length=100_000,
        description="Its text; there is no context to COPY from.",
    )
    tag: ImageRef = Field(description="Of the new image.")
    base: ImageRef = Field(description="The image it begins from.")
    base_id: str = Field(default="", pattern=r"^$|^sha256:[0-9a-f]{64}$")
    """Of the base as it was looked at."""
    network: Literal["host", "default"] = Field(
        default="host", description="The network of its RUN steps."
    )

    @model_validator(mode="after")
    def _begins_from_its_base(self) -> BuildImageArgs:
        found = re.findall(r"^\s*FROM\s+(.*\S)", self.dockerfile, re.M | re.I)
        if len(found) != 1:
            raise ValueError("a Dockerfile has one FROM and an image")
        if found[0] not in (self.base, self.base_id):
            raise ValueError(f"it begins FROM {found[0]}, and base is {self.base}")
        return self


class ImageBuilt(Observation):
    """A new image."""

    tag: str
    image_id: str
    cached: bool
    """Whether all its RUN steps had been done before."""
    conflicts: tuple[str, ...] = ()
    """pip's sentences about packages that do not fit any more: to be judged, not errors.

    A step from the cache says nothing again: ``cached`` with none of them tells nothing.
    """
    warnings: tuple[str, ...] = ()
    output_tail: str = ""

    def headline(self) -> str:
        """What it is, and whether anything is odd."""
        told = f"{len(self.conflicts)} conflicts"
        if self.cached:
            told = "from cache, so pip told no conflicts"
        return f"{self.tag} is {self.image_id[:19]}, {told}"


class BuildImage(Tool[BuildImageArgs, ImageBuilt]):
    """Build a new image from a Dockerfile given as text; the base image stays as it is."""

    risk = Risk.CHANGE

    def title(self, args: BuildImageArgs) -> str:
        """Name it."""
        return f"Build an image with one more layer on {args.base}."

    def command(self, args: BuildImageArgs, call: CallContext) -> Command:
        """Return ``docker build`` with the Dockerfile on standard input, for our engine client."""
        words = ("--tag", args.tag, *label_words(call, made="image", content=args.tag))
        more = ("--network", args.network, "--force-rm", "-")
        return docker("build", *words, *more, stdin=args.dockerfile, timeout_s=3600.0, via="engine")

    def parse(self, args: BuildImageArgs, call: CallContext, result: Result) -> ImageBuilt:
        """Read what was built.

        Raises:
            ToolFailed: a step failed, or the engine cannot be used; the message begins with the
                earliest real cause, in the words of whoever said it.
        """
        rows = engine_answers(result.stdout)
        text = plain("".join(_said(row) for row in rows))
        if not result.ok:
            raise _failure(args, result, text)
        image_id = next((row["aux"]["ID"] for row in reversed(rows) if _has_id(row)), "")
        if not image_id:
            raise BadReply(f"docker build {args.tag}: the engine does not tell the image's id")
        return ImageBuilt(
            tag=args.tag,
            image_id=image_id,
            cached=_is_cached(text),
            conflicts=tuple(dict.fromkeys(conflict_lines(_without_marks(text)))),
            warnings=tuple(dict.fromkeys(_WARNING.findall(text)))[:MAX_WARNINGS],
            output_tail="\n".join(text.splitlines()[-TAIL_LINES:]),
        )

    def subjects(self, args: BuildImageArgs) -> tuple[Subject, ...]:
        """The new image; the one that it begins from stays as it is."""
        return (image_subject(args.tag),)

    def undo_text(self, args: BuildImageArgs) -> str:
        """A built image is removed; nothing else has changed."""
        return f"docker image rm {args.tag} (remove_image)"


def _said(row: dict[str, object]) -> str:
    return str(row.get("stream", ""))


def _has_id(row: dict[str, object]) -> bool:
    aux = row.get("aux")
    return isinstance(aux, dict) and "ID" in aux


def _without_marks(text: str) -> str:
    """Return the text without pip's ``ERROR:`` before its sentences."""
    return re.sub(r"^ERROR: ", "", text, flags=re.M)


def _steps(text: str) -> list[tuple[str, str, str]]:
    """Return number, instruction and output of each step that was begun."""
    parts = _STEP.split(text)[1:]
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def _is_cached(text: str) -> bool:
    runs = [output for _, words, output in _steps(text) if words.upper().startswith("RUN")]
    return all(_CACHED in output for output in runs)


def _failure(args: BuildImageArgs, result: Result, text: str) -> ToolFailed:
    what = f"docker build {args.tag}"
    steps = _steps(text)
    if not steps or result.ending is not Ending.EXITED:
        return failure(what, result)
    number, words, output = steps[-1]
    cause = _cause(words, output)
    said = result.stderr.strip()
    lines = [f"{what} failed at step {number} ({words[:200]}): {cause or said}"]
    return ToolFailed("\n".join(dict.fromkeys([*lines, said] if cause else lines)))


def _cause(words: str, output: str) -> str:
    """Return why a step failed, from what it printed; empty where it says nothing of it."""
    first = _CAUSES.search(output)
    found = [first.group().strip()[:400]] if first else []
    if _PIP.search(words) and error_kind(output) is not PipErrorKind.OTHER:
        found += decisive_lines(output).splitlines()
    elif not found:
        found = [earliest_error(output)]
    return "\n".join(dict.fromkeys(filter(None, found)))
