"""Look at machines: what they are, what is wrong with them, and what to do about it.

Without HOST: all hosts of the inventory (docs/hosts.md), or this machine where there is none. All
are asked at once, by one connection each; nothing is changed there. Exit code 0 where nothing is
wrong, 1 where a finding is an error (with --compare: where B lacks something that weighs so much),
5 where a host cannot be reached. For example:

    bringup doctor
    bringup doctor spark-1 @gpus 'gpu[01-04]' user@host:2222
    bringup doctor --compare spark-1 spark-2
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agent import settings
from agent.cli import output
from agent.cli.options import OneJson
from agent.doctor.ask import Fleet, ssh_port
from agent.doctor.checkup import Checkup, check_up
from agent.doctor.document import document_of, document_of_pair
from agent.doctor.pair import pair_of
from agent.doctor.show import Shown, ShownPair
from agent.doctor.waiting import Waiting
from agent.inventory import Inventory, InventoryError, found, select
from agent.inventory_build import ALL
from agent.inventory_parts import HERE, Member
from agent.passphrase import ASKER
from agent.redact import Redactor, secrets_of

LIMIT_S = 60.0
"""How long one host may take."""


def run(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST", help="Names, @GROUPS, ranges, or as ssh knows them."),
    ] = None,
    inventory: Annotated[
        Path | None,
        typer.Option(help="The file of hosts (default: ./hosts.yaml).", show_default=False),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="What host B lacks that A has.", show_default=False),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="What one host may take.")
    ] = LIMIT_S,
    json: OneJson = False,
) -> None:
    """Ask the hosts, judge what they say, and show it."""
    known = found(settings.load(inventory=inventory).inventory)
    members = _pair(compare, hosts, known) if compare else _asked(hosts or [], known)
    checkup = _look(members, known, timeout, ways=not compare)
    if compare:
        pair = pair_of(checkup)
        _show(ShownPair(pair), document_of_pair(pair), as_json=json)
        raise typer.Exit(pair.exit_code)
    _show(Shown(checkup), document_of(checkup), as_json=json)
    raise typer.Exit(checkup.exit_code)


def _pair(
    words: tuple[str, str], more: list[str] | None, known: Inventory | None
) -> tuple[Member, ...]:
    members = select(words, known)
    if more or len(members) != 2:
        raise InventoryError("--compare A B: two different hosts are needed, and no others")
    return members


def _asked(words: list[str], known: Inventory | None) -> tuple[Member, ...]:
    """Return the hosts that are meant: those named, else all, else this machine."""
    if not words:
        return select([f"@{ALL}"], known) if known and known.members else (HERE,)
    members = select(words, known)
    if not members:
        raise InventoryError(f"{', '.join(words)}: no host is in it")
    return members


def _look(
    members: tuple[Member, ...], known: Inventory | None, limit_s: float, *, ways: bool
) -> Checkup:
    """Ask all hosts; no connection stays open."""
    redactor = Redactor(secrets_of(settings.environment()), {})
    config = settings.load().ssh_config
    names = list(known.members) if known else []
    ports = partial(ssh_port, config_file=str(config.expanduser()) if config else None)
    with Waiting(sys.stderr) as waiting, ASKER.beside(waiting.paused):
        fleet = Fleet(members, limit_s, redact=redactor.redact, clock=waiting.clock)
        try:
            return check_up(fleet, port_of=ports, known=names, ways=ways, tell=waiting.tell)
        finally:
            fleet.close()


def _show(what: Shown | ShownPair, document: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.document(**document)
        return
    from rich.console import Console

    console = Console()
    with output.guarded(), console.capture() as captured:
        console.print(what)
    output.write(captured.get())
