"""What a registry has under a reference, before anything is pulled."""

from __future__ import annotations

import json
import re
from typing import Any

from tools.base import CallContext, Observation, Subject, Tool
from tools.command import Command, Result
from tools.docker import docker, failure, image_subject, is_missing, mib
from tools.docker_engine import architecture
from tools.errors import BadReply
from tools.images import ImageArgs

DISK_PER_DOWNLOAD = 3.0
"""Disk that a pull takes, by its compressed size: the download, and the layers unpacked from it.

Layers of Python packages and CUDA libraries shrink to about half.
"""

_LOOPBACK = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?/")


class PlatformSize(Observation):
    """One platform that an image exists for."""

    platform: str
    """``linux/amd64``, ``linux/arm64/v8``."""
    compressed_mib: int
    """What is downloaded when the engine has none of its layers."""


class ManifestState(Observation):
    """What a registry has under a reference; without ``present`` it has nothing."""

    present: bool
    platforms: tuple[PlatformSize, ...] = ()
    said: str = ""
    """The registry's words, where it has nothing."""

    def fitting(self, platform: str) -> PlatformSize | None:
        """Return what an engine of that platform would pull, or ``None``."""
        wanted = platform.split("/")[:2]
        found = (it for it in self.platforms if it.platform.split("/")[:2] == wanted)
        return next(found, None)

    def headline(self) -> str:
        """Platforms and sizes."""
        if not self.present:
            return f"the registry has no such image: {self.said}"[:200]
        return ", ".join(f"{it.platform} {it.compressed_mib} MiB" for it in self.platforms)[:200]


class ImageManifest(Tool[ImageArgs, ManifestState]):
    """Ask the registry for an image's platforms and compressed sizes; nothing is pulled."""

    def command(self, args: ImageArgs, call: CallContext) -> Command:
        """Return ``docker manifest inspect``; a registry on loopback may speak plain HTTP."""
        insecure = ("--insecure",) if _LOOPBACK.match(args.image) else ()
        words = ("inspect", "--verbose", *insecure, args.image)
        return docker("manifest", *words, timeout_s=60.0)

    def parse(self, args: ImageArgs, call: CallContext, result: Result) -> ManifestState:
        """Read the manifest or the list of them.

        Raises:
            ToolFailed: there is no docker program, or the registry cannot be asked.
            BadReply: the answer has another form.
        """
        if is_missing(result):
            return ManifestState(present=False, said=result.tail)
        if not result.ok:
            raise failure("docker manifest inspect", result)
        try:
            answer = json.loads(result.stdout)
            rows = answer if isinstance(answer, list) else [answer]
            sizes = [_platform(row) for row in rows]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadReply(
                f"docker manifest inspect: the answer has another form: {result.stdout[:200]}"
            ) from error
        known = tuple(size for size in sizes if not size.platform.startswith("unknown"))
        return ManifestState(present=True, platforms=known)

    def subjects(self, args: ImageArgs) -> tuple[Subject, ...]:
        """The image."""
        return (image_subject(args.image),)


def _platform(row: dict[str, Any]) -> PlatformSize:
    """Read one manifest; its layers are listed under a key that depends on its kind."""
    kind = row["Descriptor"].get("platform") or {}
    words = [kind.get("os", "?"), architecture(kind.get("architecture", "?")), kind.get("variant")]
    manifest = row.get("SchemaV2Manifest") or row.get("OCIManifest") or {}
    size = sum(layer["size"] for layer in manifest.get("layers", ()))
    return PlatformSize(platform="/".join(filter(None, words)), compressed_mib=mib(size))


def pull_refusal(manifest: ManifestState, platform: str, free_mib: int | None) -> str:
    """Say why an image should not be pulled, or return an empty text.

    Args:
        manifest: what the registry has.
        platform: the engine's, such as ``linux/amd64``.
        free_mib: free disk under the engine's data root; ``None`` where it is not known.
    """
    if not manifest.present:
        return f"the registry has no such image: {manifest.said}"
    found = manifest.fitting(platform)
    if found is None:
        has = ", ".join(it.platform for it in manifest.platforms) or "no platform"
        return f"the image is for {has}, and this engine is {platform}"
    needed = round(found.compressed_mib * DISK_PER_DOWNLOAD)
    if free_mib is not None and needed > free_mib:
        return (
            f"the image needs about {needed} MiB of disk ({found.compressed_mib} MiB compressed), "
            f"and {free_mib} MiB are free"
        )
    return ""
