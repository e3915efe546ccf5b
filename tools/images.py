"""Look at images: which there are, and what one is; and remove one."""

from __future__ import annotations

import re

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.container_use import size_mib
from tools.docker import (
    ENGINE,
    ImageRef,
    docker,
    failure,
    image_subject,
    is_missing,
    mib,
    our_labels,
    read_row,
    read_rows,
)
from tools.docker_engine import architecture

_ROW = (
    '{"repository":{{json .Repository}},"tag":{{json .Tag}},"id":{{json .ID}},'
    '"size":{{json .Size}},"created":{{json .CreatedAt}}}'
)
_ENV = (
    '[{{range $i, $e := .Config.Env}}{{if $i}},{{end}}{{$n := index (split $e "=") 0}}'
    '{{if eq $n "PATH"}}{{json $e}}{{else}}{{json $n}}{{end}}{{end}}]'
)
_ONE = (
    '{"id":{{json .Id}},"tags":{{json .RepoTags}},"digests":{{json .RepoDigests}},'
    '"architecture":{{json .Architecture}},"os":{{json .Os}},"size":{{json .Size}},'
    '"created":{{json .Created}},"user":{{json .Config.User}},'
    '"entrypoint":{{json .Config.Entrypoint}},"cmd":{{json .Config.Cmd}},'
    '"workdir":{{json .Config.WorkingDir}},"labels":{{json .Config.Labels}},'
    '"layers":{{if .RootFS.Layers}}{{len .RootFS.Layers}}{{else}}0{{end}},"env":' + _ENV + "}"
)
"""Names of variables leave the target, and of the values that of PATH alone."""


class ListImagesArgs(Args):
    """Which images."""

    label: str = Field(
        default="",
        pattern=r"^$|^[A-Za-z0-9][A-Za-z0-9_./-]*(=[A-Za-z0-9_./:@+-]*)?$",
        description="Only those with this label, such as bringup.run.",
    )


class ImageRow(Observation):
    """One image of the list; an image with several tags has several rows."""

    reference: str
    """``name:tag``; empty for an image without a name."""
    id: str
    size_mib: int
    created: str = ""


class ImageList(Observation):
    """The images of an engine."""

    images: tuple[ImageRow, ...]

    def headline(self) -> str:
        """How many, and their names."""
        names = (row.reference or row.id[7:19] for row in self.images)
        return f"{len(self.images)} images: {', '.join(names)}"[:200]


class ListImages(Tool[ListImagesArgs, ImageList]):
    """List the images that the Docker engine has, with their sizes."""

    def command(self, args: ListImagesArgs, call: CallContext) -> Command:
        """Return ``docker image ls``."""
        words = ("--filter", f"label={args.label}") if args.label else ()
        return docker("image", "ls", *words, "--no-trunc", "--format", _ROW)

    def parse(self, args: ListImagesArgs, call: CallContext, result: Result) -> ImageList:
        """Read the rows.

        Raises:
            ToolFailed: docker cannot be used.
        """
        return ImageList(images=tuple(map(_row, read_rows("docker image ls", result))))

    def subjects(self, args: ListImagesArgs) -> tuple[Subject, ...]:
        """The engine."""
        return (ENGINE,)


def _row(row: dict[str, str]) -> ImageRow:
    named = "<none>" not in (row["repository"], row["tag"])
    return ImageRow(
        reference=f"{row['repository']}:{row['tag']}" if named else "",
        id=row["id"],
        size_mib=round(size_mib(row["size"])),
        created=row["created"],
    )


class ImageArgs(Args):
    """Which image."""

    image: ImageRef = Field(description="name:tag or id.")


class ImageState(Observation):
    """What an image is; without ``present`` all else says nothing."""

    present: bool
    id: str = ""
    repo_tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    architecture: str = ""
    os: str = ""
    size_mib: int = 0
    """Unpacked, layers that other images share included."""
    created: str = ""
    user: str = ""
    """Empty for root."""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    workdir: str = ""
    env_names: tuple[str, ...] = ()
    path: str = ""
    """The value of PATH, the only one that is read."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Only our own, ``bringup.*``."""
    layers: int = 0

    @property
    def platform(self) -> str:
        """What it is for: ``linux/amd64``."""
        return f"{self.os}/{self.architecture}"

    def headline(self) -> str:
        """Platform, size and what it starts."""
        if not self.present:
            return "there is no such image on this engine"
        words = " ".join((*self.entrypoint, *self.cmd))
        return f"{self.id[:19]}, {self.platform}, {self.size_mib} MiB, starts: {words}"[:200]


class InspectImage(Tool[ImageArgs, ImageState]):
    """Look at an image of the engine: id, digests, platform, size, entrypoint, user, our labels."""

    def command(self, args: ImageArgs, call: CallContext) -> Command:
        """Return ``docker image inspect`` for the fields that are read."""
        return docker("image", "inspect", "--format", _ONE, args.image)

    def parse(self, args: ImageArgs, call: CallContext, result: Result) -> ImageState:
        """Read what it is; that there is none is an answer too.

        Raises:
            ToolFailed: docker cannot be used.
        """
        if is_missing(result):
            return ImageState(present=False)
        row = read_row("docker image inspect", result)
        env = [word.partition("=") for word in row["env"]]
        return ImageState(
            present=True,
            id=row["id"],
            repo_tags=tuple(row["tags"] or ()),
            digests=tuple(row["digests"] or ()),
            architecture=architecture(row["architecture"]),
            os=row["os"],
            size_mib=mib(row["size"]),
            created=row["created"],
            user=row["user"],
            entrypoint=tuple(row["entrypoint"] or ()),
            cmd=tuple(row["cmd"] or ()),
            workdir=row["workdir"],
            env_names=tuple(sorted(name for name, _, _ in env)),
            path=next((value for name, _, value in env if name == "PATH"), ""),
            labels=our_labels(row["labels"]),
            layers=row["layers"],
        )

    def subjects(self, args: ImageArgs) -> tuple[Subject, ...]:
        """The image."""
        return (image_subject(args.image),)


class ImageRemoved(Observation):
    """What was taken away."""

    untagged: tuple[str, ...]
    deleted: int
    """Images and layers that are gone from the disk; 0 where another name keeps them."""

    def headline(self) -> str:
        """Which names, and whether anything is gone."""
        return f"{', '.join(self.untagged) or 'nothing'} untagged, {self.deleted} layers deleted"


class RemoveImage(Tool[ImageArgs, ImageRemoved]):
    """Remove an image's name, and the image itself when it was its last one."""

    risk = Risk.DESTROY

    def command(self, args: ImageArgs, call: CallContext) -> Command:
        """Return ``docker image rm``."""
        return docker("image", "rm", args.image, timeout_s=120.0)

    def parse(self, args: ImageArgs, call: CallContext, result: Result) -> ImageRemoved:
        """Read what went.

        Raises:
            ToolFailed: docker cannot be used, there is no such image, or a container needs it.
        """
        if not result.ok:
            raise failure("docker image rm", result)
        untagged = re.findall(r"^Untagged: (.+)$", result.stdout, re.M)
        deleted = re.findall(r"^Deleted: ", result.stdout, re.M)
        return ImageRemoved(untagged=tuple(untagged), deleted=len(deleted))

    def subjects(self, args: ImageArgs) -> tuple[Subject, ...]:
        """The image."""
        return (image_subject(args.image),)
