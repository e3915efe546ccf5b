"""``docker pull`` through the SDK: refused early where it cannot fit, with progress in bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator

from docker.errors import APIError

from tools.command import Command
from tools.connectors.engine_client import EngineClient
from tools.connectors.engine_words import Item, Refused, Words, bounded

EVERY_S = 0.5
"""Progress is told so often at most."""
_MOVING = ("Downloading", "Extracting")
_DONE = ("Pull complete", "Already exists")
_KNOWN = ("Pulling fs layer", "Waiting", "Verifying Checksum", "Download complete")

_WORDS = Words("pull")
_WORDS.add_argument("--platform")
_WORDS.add_argument("image")


def pull(client: EngineClient, command: Command) -> Iterator[Item | str]:
    """Pull an image: yield the registry's answer, the engine's, and last what the image is.

    Raises:
        Refused: the image is for other platforms than the engine's, or the pull failed.
        Unknown: the command says something that is not known here.
        APIError: the engine refuses.
    """
    args = _WORDS.parse_args(command.argv[2:])
    engine = client.version()
    platform = f"{engine['Os']}/{engine['Arch']}"
    found = _distribution(client, args.image)
    yield {"engine": platform, **found}
    has = found.get("platforms", [])
    if not args.platform and has and not any(_fits(it, platform) for it in has):
        raise Refused(f"{args.image} has {', '.join(has)} only and this engine is {platform}")
    progress = Progress()
    items = client.pull(args.image, stream=True, decode=True, platform=args.platform)
    for item in bounded(client, items):
        yield progress.take(item)
        if item.get("status") not in _MOVING:
            yield item
    yield progress.line(final=True)
    image = client.inspect_image(args.image)  # type: ignore[no-untyped-call]
    kept = ("Id", "RepoTags", "RepoDigests", "Size", "Os", "Architecture", "Variant")
    yield {"image": {key: image[key] for key in kept if key in image}}


def _distribution(client: EngineClient, image: str) -> Item:
    """Ask the registry; where it does not say, the pull itself will tell why."""
    try:
        answer = client.inspect_distribution(image)  # type: ignore[no-untyped-call]
    except APIError as error:
        return {"registry_error": str(error.explanation or error)}
    platforms = (
        "/".join(filter(None, (it.get("os"), it.get("architecture"), it.get("variant"))))
        for it in answer.get("Platforms") or ()
    )
    known = [it for it in platforms if it and not it.startswith("unknown")]
    return {"digest": answer.get("Descriptor", {}).get("digest", ""), "platforms": known}


def _fits(platform: str, engine: str) -> bool:
    return platform.split("/")[:2] == engine.split("/")[:2]


class Progress:
    """Adds up the layers of a pull, and tells now and then how far it is."""

    def __init__(self) -> None:
        self._done: dict[str, bool] = {}
        self._bytes: dict[str, tuple[int, int]] = {}
        self._unpacking = ""
        self._told = ""
        self._next = 0.0

    def take(self, item: Item) -> str:
        """Take one of the engine's answers; return a line when there is something new to tell."""
        layer, status = item.get("id", ""), item.get("status", "")
        if not layer or status not in (*_MOVING, *_DONE, *_KNOWN):
            return ""
        self._done[layer] = status in _DONE
        detail = item.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._bytes[layer] = (detail["current"], detail["total"])
        elif status not in ("Pulling fs layer", "Waiting", "Downloading"):
            size = self._bytes.get(layer, (0, 0))[1]
            self._bytes[layer] = (size, size)
        self._unpacking = ", unpacking" if status in ("Extracting", "Pull complete") else ""
        return self.line()

    def line(self, final: bool = False) -> str:
        """Return how far it is, or an empty text where that was told or it is too soon."""
        now = time.monotonic()
        if not self._done or (now < self._next and not final):
            return ""
        came, size = (sum(pair[i] for pair in self._bytes.values()) for i in (0, 1))
        more = "+" if len(self._bytes) < len(self._done) else ""
        of_bytes = f", {came / 1e6:.0f} of {size / 1e6:.0f}{more} MB" if size else ""
        end = "" if final else self._unpacking
        text = f"pull: {sum(self._done.values())} of {len(self._done)} layers{of_bytes}{end}\n"
        if text == self._told:
            return ""
        self._told, self._next = text, now + EVERY_S
        return text
