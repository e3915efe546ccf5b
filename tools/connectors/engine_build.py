"""``docker build ... -`` through the SDK: a Dockerfile without a context, and its output."""

from __future__ import annotations

import io
from collections.abc import Iterator

from tools.command import Command
from tools.connectors.engine_client import EngineClient
from tools.connectors.engine_words import Item, Refused, Unknown, Words, bounded

_WORDS = Words("build")
_WORDS.add_argument("--tag", required=True)
_WORDS.add_argument("--label", action="append", default=[])
_WORDS.add_argument("--network", default="default")
_WORDS.add_argument("--force-rm", action="store_true")
_WORDS.add_argument("--no-cache", action="store_true")
_WORDS.add_argument("context")


def build(client: EngineClient, command: Command) -> Iterator[Item | str]:
    """Build an image from the Dockerfile on standard input: yield the engine's answers.

    The engine's own builder is used (not BuildKit); it stops when the connection is closed.

    Raises:
        Refused: a step failed.
        Unknown: the command says something that is not known here.
        APIError: the engine refuses.
    """
    args = _WORDS.parse_args(command.argv[2:])
    if args.context != "-" or not (command.stdin or "").strip():
        raise Unknown("docker build: a Dockerfile is taken from standard input only (`-`)")
    items = client.build(
        fileobj=io.BytesIO((command.stdin or "").encode()),
        tag=args.tag,
        labels=_labels(args.label),
        network_mode=args.network,
        rm=True,
        forcerm=args.force_rm,
        nocache=args.no_cache,
        decode=True,
    )
    built = False
    for item in bounded(client, items):
        yield item.get("stream", "") or _status(item)
        built |= "ID" in (item.get("aux") or {})
        if not item.get("progressDetail"):
            yield item
    if not built:
        raise Refused("the engine's answer ended before the image was built")


def _labels(words: list[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in words)
    return {name: value for name, _, value in pairs}


def _status(item: Item) -> str:
    """Return the line of a layer that a build pulls, without its running numbers."""
    if "status" not in item or item.get("progressDetail"):
        return ""
    return f"{item.get('id', '')} {item['status']}\n".lstrip()
