"""Copy a file or a folder to a host, from a host, or from one host to another.

A place is HOST:PATH, HOST/CONTAINER:PATH, or a path here. The copy gets the name that is given;
behind a / it gets the source's. What is there and whole is left alone, and a copy that broke off
goes on where it was: give the same command again. Every file is compared by its sha256. Exit code
0 where all is there, 1 where it is not, 5 where a host cannot be reached. For example:

    bringup copy models/tiny spark-1:/srv/
    bringup copy spark-1:/srv/tiny spark-2:/srv/ --direct 10.0.0.2
"""

from __future__ import annotations

import posixpath
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agent import inventory, settings
from agent.cli import output
from agent.cli.options import OneJson
from agent.connect import connector_to
from agent.problems import Problem
from tools.connectors.base import Connector
from tools.connectors.docker import Docker
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.transfer import FilesCopied
from tools.transfer_session import QUIET_S, Copy, copy
from tools.transfer_side import Place

_REMOTE = re.compile(r"([^/:.~][^/:]*(?::\d+)?)(?:/([^/:]+))?:(.*)", re.DOTALL)
NOT_ALL = 1


class PlaceError(Problem):
    """A place cannot be used; the message says which and why."""


def run(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A path, or HOST:PATH.")],
    to: Annotated[str, typer.Argument(metavar="TO", help="Likewise; behind a / the same name.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Keep what is there as NAME.before-TIME.")
    ] = False,
    direct: Annotated[
        str,
        typer.Option(
            metavar="IP", help="TO's private address: not through here, and not encrypted."
        ),
    ] = "",
    quiet: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="So long nothing may move.")
    ] = QUIET_S,
    json: OneJson = False,
) -> None:
    """Copy, tell how far it is, and say what was done."""
    tag = time.strftime("%Y%m%d-%H%M%S")
    with ExitStack() as stack:
        begin = _place(source, stack.callback)
        end = _place(_named(to, source), stack.callback)
        wish = Copy(begin, end, replace=replace, direct=direct, tag=tag, quiet_s=quiet)
        try:
            done = copy(wish, _telling(as_json=json))
        except ToolFailed as error:
            raise typer.Exit(output.complain(str(error), as_json=json, code=NOT_ALL)) from error
    if json:
        output.document(**{**asdict(done), "to": str(end)})
        return
    seen = FilesCopied.model_validate({**asdict(done), "to": str(end)})
    kept = [f"  {name} is kept as {name}.before-{tag}\n" for name in done.replaced]
    output.write(f"{seen.headline()}\n{''.join(kept)}")


def _named(to: str, source: str) -> str:
    """Return the copy's own name: behind a slash it is the source's."""
    if not to.endswith(("/", ":")):
        return to
    name = posixpath.basename(source.rstrip("/").rpartition(":")[2])
    if not name or name in (".", "..", "~"):
        raise PlaceError(f"{to}: {source} has no name of its own; say which the copy gets")
    return to + name


def _place(text: str, later: Callable[[Callable[[], None]], object]) -> Place:
    """Return the place that a word names; what is opened for it is closed later."""
    found = _REMOTE.fullmatch(text)
    if found is None:
        return Place(Local(), str(Path(text).expanduser().absolute()), sys.executable)
    host, container, path = found.groups()
    member = inventory.one(host, inventory.found(settings.load().inventory))
    reached: Connector = connector_to(member.host)
    later(reached.close)
    if container:
        reached = Docker(container, reached)
    return Place(reached, path.removeprefix("~/") or ".")


def _telling(*, as_json: bool) -> Callable[[str], None]:
    """Return what shows the progress: one line that is written over, on a terminal alone."""
    if as_json or not sys.stderr.isatty():
        return lambda text: None

    def tell(text: str) -> None:
        end = "\n" if text.startswith("copy: 100%") else ""
        sys.stderr.write(f"\r\033[K{text.rstrip()}{end}")
        sys.stderr.flush()

    return tell
