"""Ask a server over HTTP: does a URL answer, and does a chat completion come back well-formed."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from tools.base import CallContext, Observation, Subject
from tools.command import Command
from tools.files import Word
from tools.network import port_subject
from tools.probe import ProbeArgs, ProbeTool

GRACE_S = 15.0
"""Seconds that a probe gets beyond its own time limit, to start and to report."""


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// URL with a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user name or password")
    if not value.isascii() or any(char.isspace() or not char.isprintable() for char in value):
        raise ValueError(
            "must not hold spaces, control or non-ASCII characters; percent-encode them"
        )
    _port_of(value)
    return value


def _port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


HttpUrl = Annotated[Word, AfterValidator(_http_url)]
"""A plain http or https URL, without credentials."""


class HttpCheckArgs(ProbeArgs):
    """Which URL to get."""

    url: HttpUrl
    """As seen from the target."""
    timeout_s: float = Field(default=5.0, gt=0, le=300, description="Seconds for the whole answer.")


class HttpAnswer(Observation):
    """What a GET brought; redirects are shown and not followed."""

    clock_fields = ("elapsed_s",)

    reachable: bool
    """Whether something answered in HTTP, whatever the status."""
    status: int | None
    body_head: str
    """The body's first characters."""
    body_more: bool
    """Whether the body goes on after ``body_head``."""
    error: str | None
    """Why there is no answer, or no complete one."""
    elapsed_s: float


class HttpCheck(ProbeTool[HttpCheckArgs, HttpAnswer]):
    """Send one HTTP GET from the target: was it answered, with what status and body?"""

    script: ClassVar[str] = "endpoint.py"

    def command(self, args: HttpCheckArgs, call: CallContext) -> Command:
        """Return the probe, with time enough to report that its time was over."""
        return replace(super().command(args, call), timeout_s=args.timeout_s + GRACE_S)

    def payload(self, args: HttpCheckArgs) -> dict[str, Any]:
        """Return what the script reads."""
        return {"ask": "get", "url": args.url, "timeout_s": args.timeout_s}

    def subjects(self, args: HttpCheckArgs) -> tuple[Subject, ...]:
        """The port that is asked."""
        return (port_subject(_port_of(args.url)),)


class ChatCheckArgs(ProbeArgs):
    """Which server and model to ask what."""

    base_url: HttpUrl = Field(description="Such as http://127.0.0.1:8000, with or without /v1.")
    model: str = Field(min_length=1, description="As the server names it.")
    prompt: str = Field(default="Hello", max_length=20_000, description="What to say to it.")
    max_tokens: int = Field(default=32, ge=1, le=4096, description="Longest answer, in tokens.")
    level: Literal["responds"] = Field(
        default="responds", description="responds: a well-formed answer, whatever it says."
    )
    timeout_s: float = Field(
        default=120.0,
        gt=0,
        le=3600,
        description="Seconds for everything, second attempts included.",
    )


class ChatAnswer(Observation):
    """One chat completion: its form, its text and its speed."""

    clock_fields = (
        *("content", "content_omitted", "completion_tokens", "finish_reason"),
        *("ttft_s", "tokens_per_s", "total_s"),
    )
    """A server that works says something else each time."""

    well_formed: bool
    """HTTP 200, valid JSON with choices, and a finish_reason; the text itself may be empty."""
    problem: str | None
    """Why it is not well-formed."""
    status: int | None
    """HTTP status; ``None`` where none came."""
    content: str
    content_omitted: int = 0
    """Characters of the text that are left out."""
    finish_reason: str | None
    completion_tokens: int | None
    """As the server counts; else the number of streamed pieces with text."""
    ttft_s: float | None
    """Seconds to the first piece of text; ``None`` without streaming or text."""
    tokens_per_s: float | None
    """Streamed in pieces: tokens after the first by the time after the first; else all by all."""
    total_s: float
    streamed: bool

    def headline(self) -> str:
        """Whether it is well-formed, or what is wrong."""
        if not self.well_formed:
            return f"not well-formed: {self.problem}"[:200]
        speed = f", {self.tokens_per_s} tokens/s" if self.tokens_per_s is not None else ""
        return f"well-formed, {self.completion_tokens} tokens in {self.total_s:.2f} s{speed}"


class ChatCheck(ProbeTool[ChatCheckArgs, ChatAnswer]):
    """Ask an OpenAI-compatible server one question: is the answer well-formed, and how fast?

    Streams where the server can, and asks again without streaming where it cannot.
    """

    script: ClassVar[str] = "endpoint.py"

    def command(self, args: ChatCheckArgs, call: CallContext) -> Command:
        """Return the probe, with time enough to report that its time was over."""
        return replace(super().command(args, call), timeout_s=args.timeout_s + GRACE_S)

    def payload(self, args: ChatCheckArgs) -> dict[str, Any]:
        """Return what the script reads."""
        return {"ask": "chat", **args.model_dump(exclude={"python", "level"})}

    def subjects(self, args: ChatCheckArgs) -> tuple[Subject, ...]:
        """The port that is asked."""
        return (port_subject(_port_of(args.base_url)),)
