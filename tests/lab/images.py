"""The images of the story, built from Debian and PyPI packages only, once, and kept by content.

Nothing is pulled. ``base-managed`` is made by debootstrap; every other image is the folder of its
name in ``images/``, built on another one. What an image is made of gives its tag
(``bringup-lab:NAME-HASH``), so a second session finds it; its name in the story, as
``lab/sglang:spark``, is a second tag, laid anew whenever it is asked for.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docker.errors import APIError, ImageNotFound

from tests.lab.base_image import base_hash, import_base
from tests.lab.engine import LAB, client, engine
from tests.lab.package_source import torch_wheel_folder, wheel_server

FOLDER = Path(__file__).parent / "images"
REPOSITORY = "bringup-lab"
BUILD_S = 900.0
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
"""Build arguments that every engine knows, and that stay out of the image."""


@dataclass(frozen=True)
class Image:
    """One image: its name here, its name in the story, and the image that it is built on."""

    name: str
    ref: str
    parent: str | None
    torch: bool = False


IMAGES = {
    image.name: image
    for image in (
        Image("base-managed", "lab/base:managed", None),
        Image("base", "lab/base:latest", "base-managed"),
        Image("transformers-4", "lab/transformers:4.57.6", "base"),
        Image("engine-old", "lab/sglang:spark", "transformers-4"),
        Image("torch", "lab/torch:2.13.0", "transformers-4", torch=True),
        Image("engine-ready", "lab/dgx-spark-sglang:0.5.10rc0", "torch"),
        Image("engine-other", "lab/vllm:0.14", "transformers-4"),
        Image("engine-known", "lab/sglang:known", "engine-old"),
        Image("engine-managed", "lab/dgx-spark-sglang:managed", "engine-ready"),
        Image("engine-no-ca", "lab/dgx-spark-sglang:no-ca", "engine-ready"),
        Image("engine-fixed", "lab/dgx-spark-sglang:fixed", "engine-ready"),
        Image("engine-shadowed", "lab/dgx-spark-sglang:shadowed", "engine-ready"),
        Image("engine-short", "lab/dgx-spark-sglang:short", "engine-fixed"),
        Image("glm", "lab/glm-flash:4.7", "engine-other"),
        Image("bare-host", "lab/bare-host:latest", "base"),
        Image("spark", "lab/spark-host:latest", "base"),
    )
}


def image(name: str) -> str:
    """Return an image's name in the story, with the image there; build it when it is missing.

    Args:
        name: A key of `IMAGES`.

    Raises:
        RuntimeError: A build failed; with the end of its output.
    """
    spec = IMAGES[name]
    engine()
    with _lock():
        _lay(spec)
    return spec.ref


def kept_tag(name: str) -> str:
    """Return the tag that names an image's content."""
    return f"{REPOSITORY}:{name}-{content(name)}"


@functools.cache
def content(name: str) -> str:
    """Return the hash of all that an image is made of: its folder, and the image below."""
    parent = IMAGES[name].parent
    if parent is None:
        return base_hash()
    parts = hashlib.sha256(f"{content(parent)} {platform()}".encode())
    for file in sorted((FOLDER / name).iterdir()):
        parts.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return parts.hexdigest()[:12]


def platform() -> str:
    """Return the kind of processor, as wheels call it."""
    return os.uname().machine


def _lay(spec: Image) -> None:
    """Have an image and its name in the story; what that meant before goes, if nothing uses it."""
    if _id(kept_tag(spec.name)) is None:
        if spec.parent is None:
            import_base(kept_tag(spec.name))
        else:
            _lay(IMAGES[spec.parent])
            _build(spec)
        _forget_older(spec.name)
    before, now = _id(spec.ref), _id(kept_tag(spec.name))
    if before == now:
        return
    repository, _, tag = spec.ref.rpartition(":")
    api = client()
    try:
        api.tag(kept_tag(spec.name), repository, tag=tag, force=True)
    finally:
        api.close()
    if before:
        _remove(before)


def _id(ref: str) -> str | None:
    api = client()
    try:
        return str(api.inspect_image(ref)["Id"])  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None
    finally:
        api.close()


def _build(spec: Image) -> None:
    arguments = {name: os.environ[name] for name in PROXIES if name in os.environ}
    arguments["BASE"] = kept_tag(str(spec.parent))
    if not spec.torch:
        return _run_build(spec, arguments)
    with wheel_server(torch_wheel_folder()) as address:
        return _run_build(spec, {**arguments, "FIND_LINKS": address})


def _run_build(spec: Image, arguments: dict[str, str]) -> None:
    api = client(BUILD_S)
    said: list[str] = []
    try:
        for line in api.build(
            fileobj=_context(FOLDER / spec.name),
            custom_context=True,
            tag=kept_tag(spec.name),
            buildargs=arguments,
            network_mode="host",
            rm=True,
            forcerm=True,
            decode=True,
        ):
            said.append(line.get("stream") or line.get("error") or "")
            if "error" in line:
                raise RuntimeError(f"image {spec.name}:\n{''.join(said)[-4000:]}")
    finally:
        api.close()


def _context(folder: Path) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, arcname=".")
    packed.seek(0)
    return packed


def _forget_older(name: str) -> None:
    """Remove what an older content of this image left; an image in use stays."""
    api = client()
    try:
        for found in api.images(name=REPOSITORY):
            for tag in found["RepoTags"] or []:
                older = tag.rpartition("-")[0] == f"{REPOSITORY}:{name}" and tag != kept_tag(name)
                if older:
                    _remove(tag)
    finally:
        api.close()


def _remove(tag: str) -> None:
    api = client()
    try:
        api.remove_image(tag)
    except APIError as error:
        if not error.is_client_error():
            raise
    finally:
        api.close()


@contextmanager
def _lock() -> Iterator[None]:
    """Let one process at a time build."""
    LAB.mkdir(parents=True, exist_ok=True)
    with (LAB / "images.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for wanted in sys.argv[1:] or IMAGES:
        begun = time.monotonic()
        sys.stdout.write(f"{wanted}: {image(wanted)}")
        size = subprocess.run(
            ["docker", "--host", engine(), "image", "inspect", "-f", "{{.Size}}", kept_tag(wanted)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        sys.stdout.write(f" {int(size) / 1e6:.0f} MB, {time.monotonic() - begun:.1f} s\n")
        sys.stdout.flush()
