"""Copy a file or a folder to a host, from a host, or from one host to another.

A place is HOST:PATH, HOST/CONTAINER:PATH, or a path here. The copy gets the name that is given;
behind a / it gets the source's. What is there and whole is left alone, and a copy that broke off
goes on where it was: give the same command again. Every file is compared by its sha256. Exit code
0 where all is there, 1 where it is not, 5 where a host cannot be reached. For example:

    bringup copy models/tiny spark-1:/srv/
    bringup copy spark-1:/srv/tiny spark-2:/srv/ --direct auto
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
from agent.doctor.ask import Fleet, ssh_port
from agent.doctor.fast_link import FastLink, fastest
from agent.inventory_parts import Member
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
AUTO = "auto"
LOOK_S = 60.0
"""How long a host may take to tell its addresses."""


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
            metavar="IP|auto",
            help="TO's private address, or the fastest: not through here, and not encrypted.",
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
        link = _link(source, to) if direct == AUTO else FastLink(direct, "")
        if direct == AUTO:
            way = (link.address and f"direct by {link.why}") or f"through here: {link.why}"
            output.say(f"copy: {way}")
        wish = Copy(begin, end, replace=replace, direct=link.address, tag=tag, quiet_s=quiet)
        try:
            done = copy(wish, _telling(as_json=json))
        except ToolFailed as error:
            raise typer.Exit(output.complain(str(error), as_json=json, code=NOT_ALL)) from error
        if link.why and not link.address:
            done.why = link.why
    if json:
        output.document(**{**asdict(done), "to": str(end)})
        return
    seen = FilesCopied.model_validate({**asdict(done), "to": str(end)})
    kept = [f"  {name} is kept as {name}.before-{tag}\n" for name in done.replaced]
    output.write(f"{seen.headline()}\n{''.join(kept)}")


def _link(source: str, to: str) -> FastLink:
    """Return the fastest way from host to host, if both are some."""
    ends = [_REMOTE.fullmatch(word) for word in (source, to)]
    hosts = [_member(end[1]) for end in ends if end is not None and not end[2]]
    if len({host.name for host in hosts}) != len(ends):
        return FastLink("", "it is no copy from one host to another")
    config = settings.load().ssh_config
    port = ssh_port(hosts[1], str(config.expanduser()) if config else None)
    fleet = Fleet(hosts, limit_s=LOOK_S)
    try:
        return fastest(fleet, port)
    finally:
        fleet.close()


def _member(word: str) -> Member:
    return inventory.one(word, inventory.found(settings.load().inventory))


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
    reached: Connector = connector_to(_member(host).host)
    later(reached.close)
    if container:
        reached = Docker(container, reached)
    return Place(reached, from_home(path, text))


def from_home(path: str, text: str) -> str:
    """Return a host's path as seen from its login's home, ``~``, where our program begins.

    Raises:
        PlaceError: it is in another's home; ``text`` is the word that says so.
    """
    if path == "~" or path.startswith("~/"):
        return path[1:].lstrip("/") or "."
    if path.startswith("~"):
        raise PlaceError(f"{text}: only one's own ~ is known; say the path, or ./~… for a name")
    return path or "."


def _telling(*, as_json: bool) -> Callable[[str], None]:
    """Return what shows the progress: one line that is written over, on a terminal alone."""
    if as_json or not sys.stderr.isatty():
        return lambda text: None

    def tell(text: str) -> None:
        end = "\n" if text.startswith("copy: 100%") else ""
        sys.stderr.write(f"\r\033[K{text.rstrip()}{end}")
        sys.stderr.flush()

    return tell
