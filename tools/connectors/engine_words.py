"""What the verbs of the engine's client share: their words, read, and how they say no."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NoReturn

from tools.connectors.engine_client import EngineClient

Item = dict[str, Any]
"""One of the engine's answers; what a verb yields besides, as text, is for people to see."""


class Unknown(ValueError):
    """The command's words are not understood; nothing was done."""


class Refused(Exception):
    """It was not done; the message says why, in the engine's words where it has some."""


class Words(argparse.ArgumentParser):
    """Reads the words of one verb; what it does not know is an error, as are shortened options."""

    def __init__(self, verb: str) -> None:
        super().__init__(prog=f"docker {verb}", add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Say what is not understood.

        Raises:
            Unknown: always.
        """
        raise Unknown(f"{self.prog}: {message}")


def bounded(client: EngineClient, items: Iterator[Item]) -> Iterator[Item]:
    """Yield the engine's answers, each read bounded by the client's deadline.

    Raises:
        Refused: the engine says that it failed.
    """
    while True:
        client.bound()
        item = next(items, None)
        if item is None:
            return
        yield item
        refused = item.get("error") or (item.get("message") if len(item) == 1 else None)
        if refused:
            raise Refused(str(refused).strip())
