"""Fetch a model's config or weights with the hub library that an image carries.

A container of the image does it, since a host often has no huggingface_hub and the image that is
to serve the model does. It sees the host's network and one folder. It runs as the image's own user
(mostly root: its Python may be readable for nobody else), and gives what it made to the owner of
the folder, which is whoever made it: the person who is logged in, where it was missing.
"""

from __future__ import annotations

import json
import posixpath
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from tools.base import Args, CallContext, Obs, Observation, Risk, Subject, Tool
from tools.command import Command, Ending, Result
from tools.docker import ImageRef, label_words
from tools.docker_run import (
    CLIENT_GRACE_S,
    LIMIT_GRACE_S,
    SCRATCH,
    Mount,
    MountPath,
    limited,
    probe_name,
    ran,
)
from tools.errors import BadReply, ToolFailed
from tools.fetch_failures import FetchFailure
from tools.image_probe import FIND_PYTHON, script_of
from tools.probe import last_marked
from tools.weights import model_subject, size_text, weights_subject

OUT = "/bringup/out"
"""Where the container sees the folder."""
PREPARE = 'mkdir -p -- "$1" && { docker rm --force "$2" >/dev/null 2>&1; shift 2; exec "$@"; }'
"""Makes the folder, which Docker would make as root, and ends an earlier try of this very call."""
FROM_HOST = (
    *("HF_TOKEN", "HF_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy"),
)
"""Variables that go in by their names alone: their values stand in no command."""
CONFIG_S = 120.0

Repo = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]*(/[\w.-]+)?$")]
Revision = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w./-]*$")]
Endpoint = Annotated[str, StringConstraints(pattern=r"^(https?://[^\s@]+)?$")]


class FetchConfigArgs(Args):
    """What to fetch, with which image, and where to."""

    image: ImageRef = Field(description="One whose Python has huggingface_hub.")
    repo: Repo = Field(description="Such as org/name.")
    revision: Revision = Field(default="main", description="A commit, branch or tag.")
    folder: MountPath = Field(description="Where to.\n\nMade where it is missing.")
    endpoint: Endpoint = Field(default="", description="Of another hub.")


class FetchWeightsArgs(FetchConfigArgs):
    """What to fetch, with which image, and where to."""

    most_gb: float = Field(
        default=0.0, ge=0, description="Refused where it is more.\n\n0: no bound."
    )
    limit_s: float = Field(default=14400.0, gt=0, description="What is there by then is kept.")


class FetchedConfig(Observation):
    """A model's config.json, and what all its files would take."""

    clock_fields = ("free_mib",)

    repo: str
    commit: str
    """The revision, as an exact commit."""
    path: str
    """Of the config.json, on the host."""
    files: int
    """How many files fetch_weights would fetch."""
    bytes: int
    """Size of all of them, whatever is there already."""
    weights_files: int
    """How many of them hold weights."""
    weights_bytes: int
    free_mib: int
    """Room on the folder's disk."""

    def headline(self) -> str:
        """Commit, and sizes against room."""
        return (
            f"{self.repo} at {self.commit[:12]}: {self.weights_files} weight files, "
            f"{size_text(self.weights_bytes)}; {size_text(self.free_mib * 2**20)} free"
        )


class FetchedWeights(Observation):
    """A model's files, checked against the sizes that the hub names."""

    clock_fields = ("free_mib",)

    repo: str
    commit: str
    """The revision, as an exact commit."""
    folder: str
    files: int
    bytes: int
    fetched_bytes: int
    """Size of those that were not there before, whole."""
    free_mib: int
    """Room that is left on the folder's disk."""

    def headline(self) -> str:
        """Commit and sizes."""
        return (
            f"{self.repo} at {self.commit[:12]}: {self.files} files, {size_text(self.bytes)}, "
            f"{size_text(self.fetched_bytes)} of it fetched now"
        )


A = TypeVar("A", bound=FetchConfigArgs)


class _Fetch(Tool[A, Obs]):
    """A tool whose script is ``fetch.py``, run in a container of an image."""

    risk = Risk.CHANGE
    what: ClassVar[str]

    def limit_s(self, args: A) -> float:
        """Seconds within the container."""
        return CONFIG_S

    def command(self, args: A, call: CallContext) -> Command:
        """Return ``docker run`` of the image's Python with the script on standard input."""
        limit_s = self.limit_s(args)
        given = args.model_dump(mode="json", include={"repo", "revision", "endpoint", "most_gb"})
        payload = json.dumps({**given, "what": self.what, "out": OUT})
        words = ["docker", "run", "--rm", "--interactive", "--name", probe_name(call)]
        words += [*label_words(call), "--pull", "never", "--network", "host", "--read-only"]
        words += ["--tmpfs", f"{SCRATCH}:rw,exec", "--security-opt", "no-new-privileges"]
        words += Mount(source=args.folder, target=OUT, read_only=False).words
        for name in FROM_HOST:
            words += ["--env", name]
        words += ["--env", f"HOME={SCRATCH}", "--env", "NVIDIA_VISIBLE_DEVICES=void"]
        inside = ("sh", "-c", FIND_PYTHON, "sh", call.marker, payload)
        program, *rest = limited(inside, limit_s)
        words += ["--entrypoint", program, args.image, *rest]
        return Command.of(
            *("sh", "-c", PREPARE, "sh", args.folder, probe_name(call), *words),
            stdin=script_of("fetch.py"),
            timeout_s=limit_s + LIMIT_GRACE_S + CLIENT_GRACE_S,
        )

    def fetched(self, args: A, call: CallContext, result: Result) -> dict[str, Any]:
        """Return what the script answered.

        Raises:
            ToolFailed: it did not do it; the message says why, with the library's own words.
            BadReply: it gave no answer, or one of another form.
        """
        what = f"{self.name} of {args.repo}"
        text = last_marked(call.marker, result.stdout)
        if text is None:
            result = ran(what, result, self.limit_s(args))
            if result.ending is Ending.EXITED and result.code in (126, 127):
                raise ToolFailed(f"{what}: no Python was found in {args.image}: {result.tail}")
            if result.ending is Ending.EXITED and result.code != 0:
                raise ToolFailed(f"{what} failed ({result.how}): {result.tail}")
            raise BadReply(f"{what}: no answer ({result.how}): {result.tail}")
        try:
            answer = json.loads(text)
            if "error" not in answer:
                return dict(answer)
            failure = FetchFailure.model_validate(answer["error"])
        except (ValueError, TypeError, ValidationError) as error:
            raise BadReply(f"{what}: the answer cannot be read: {text[:200]}") from error
        raise ToolFailed(f"{what}: {failure.explained(args.repo, args.revision)}")

    def subjects(self, args: A) -> tuple[Subject, ...]:
        """Return the weights, and the model itself where its config is fetched."""
        weights = weights_subject(args.folder)
        return (model_subject(args.folder), weights) if self.what == "config" else (weights,)

    def undo_text(self, args: A) -> str:
        """Say which files there are to remove."""
        return f"the fetched files can be removed from {args.folder}"


class FetchConfig(_Fetch[FetchConfigArgs, FetchedConfig]):
    """Fetch a model's config.json from a hub, and say how large its weights are."""

    establishes = ("model_readable",)
    runs_in = "image"
    what: ClassVar[str] = "config"

    def title(self, args: FetchConfigArgs) -> str:
        """Name it."""
        return f"Fetch the config.json of {args.repo}."

    def parse(self, args: FetchConfigArgs, call: CallContext, result: Result) -> FetchedConfig:
        """Read the answer.

        Raises:
            ToolFailed: it was not fetched.
        """
        path = posixpath.join(args.folder, "config.json")
        return FetchedConfig.model_validate({**self.fetched(args, call, result), "path": path})


class FetchWeights(_Fetch[FetchWeightsArgs, FetchedWeights]):
    """Fetch a model's files from a hub, those that are there excepted, and check their sizes.

    Whether there is room for them is looked at before the first byte comes. A file that was cut off
    is gone on with by the hub library's older releases alone; newer ones begin it anew.
    """

    establishes = ("weights_at_hand",)
    runs_in = "image"
    what: ClassVar[str] = "weights"

    def title(self, args: FetchWeightsArgs) -> str:
        """Name it."""
        return f"Fetch the weights of {args.repo}."

    def limit_s(self, args: FetchWeightsArgs) -> float:
        """The caller's limit."""
        return args.limit_s

    def parse(self, args: FetchWeightsArgs, call: CallContext, result: Result) -> FetchedWeights:
        """Read the answer.

        Raises:
            ToolFailed: not everything is there.
        """
        answer = self.fetched(args, call, result)
        return FetchedWeights.model_validate({**answer, "folder": args.folder})
