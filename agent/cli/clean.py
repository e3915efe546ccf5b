"""Remove what runs have left on a host's Docker engine: their containers and derived images.

Without --yes it only lists. Containers that still run are left alone, unless --running is given.
Model folders are never touched. Exit code 0 where nothing is left, 1 where something is, 5 where
the host or its Docker engine cannot be reached. For example:

    bringup clean spark-1
    bringup clean spark-1 --yes
"""

from __future__ import annotations

from typing import Annotated

import typer

from agent import inventory, leftovers, settings
from agent.cli import common, output
from agent.connect import connector_to
from agent.leftovers import Leftover
from tools.connectors.base import Connector
from tools.errors import ConnectionFailed, ToolFailed


def run(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="`local`, or a host that ssh or hosts.yaml knows.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without it, only list.")] = False,
    running: Annotated[bool, typer.Option("--running", help="Also what still runs.")] = False,
    json: common.OneJson = False,
) -> None:
    """Look, remove what may be removed, and say what is left."""
    member = inventory.one(host, inventory.found(settings.load().inventory))
    connector = connector_to(member.host.model_copy(update={"container": ""}))
    try:
        found = leftovers.find_all(connector)
        removed, left = _clean(connector, found, running=running) if yes else ([], found)
    except ToolFailed as error:
        raise ConnectionFailed(host, str(error)) from error
    finally:
        connector.close()
    _say(host, removed, left, as_json=json)
    raise typer.Exit(1 if left else 0)


def _clean(
    connector: Connector, found: list[Leftover], *, running: bool
) -> tuple[list[Leftover], list[Leftover]]:
    removed: list[Leftover] = []
    left: list[Leftover] = []
    for item in found:
        if item.running and not running:
            left.append(item)
            continue
        problem = leftovers.remove(connector, item)
        if problem:
            output.say(f"{item.kind} {item.name}: {problem}")
        (left if problem else removed).append(item)
    return removed, left


def _say(host: str, removed: list[Leftover], left: list[Leftover], *, as_json: bool) -> None:
    if as_json:
        output.document(host=host, removed=_rows(removed), left=_rows(left))
        return
    lines = [f"removed {item.kind} {item.name}" for item in removed]
    for item in left:
        of = f" of run {item.run}" if item.run else ""
        hint = "; it runs: `--running` removes it too" if item.running else ""
        lines.append(f"left: {item.kind} {item.name}{of}{hint}")
    output.write("".join(f"{host}: {line}\n" for line in lines or ["nothing is left there"]))


def _rows(items: list[Leftover]) -> list[dict[str, object]]:
    return [
        {"kind": item.kind, "name": item.name, "run": item.run, "running": item.running}
        for item in items
    ]
