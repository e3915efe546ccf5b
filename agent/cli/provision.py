"""Make a bare host ready, each step asked about: Python, Docker, NVIDIA's toolkit, limits.

What needs a reboot, a driver, a password or a new login waits for whoever runs the host: the run
parks with the exact commands, and `bringup resume` goes on. `bringup undo` takes all back. For
example:

    bringup provision me@spark-1
    bringup provision spark-1 --with python --env /srv/env
    bringup provision spark-1 --with python,docker,limits --mode read-only
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent import goal, inventory, settings
from agent.cli import common, deploy
from agent.provision_goal import FOLDER, PARTS


def run(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="`local`, or a host that ssh or hosts.yaml knows.")
    ],
    parts: Annotated[
        str, typer.Option("--with", help=f"What it gets, of {', '.join(PARTS)}.")
    ] = "python,docker",
    env: Annotated[
        str, typer.Option("--env", help="Folder of the Python environment there.")
    ] = FOLDER,
    memlock: Annotated[
        str, typer.Option(help="limits: KiB of memory that a login may lock.")
    ] = "unlimited",
    nofile: Annotated[str, typer.Option(help="limits: files that a login may open.")] = "1048576",
    brain: common.BrainName = None,
    base_url: common.BaseUrl = None,
    model: common.ModelName = None,
    mode: common.Mode = None,
    yes: common.Yes = False,
    on_ask: common.OnAsk = None,
    json: common.Json = False,
) -> None:
    """Build the goal, begin a run, drive it."""
    chosen = settings.load(brain=brain, base_url=base_url, model=model, mode=mode, on_ask=on_ask)
    member = inventory.one(host, inventory.found(chosen.inventory))
    data = {
        "kind": "provision",
        "hosts": [member.host.model_dump(mode="json")],
        "provide": [part.strip() for part in parts.split(",") if part.strip()],
        "environment": env,
        "memlock": memlock,
        "nofile": nofile,
    }
    wanted = goal.parse_goal(data, base=Path.cwd(), where=f"bringup provision {host}")
    raise typer.Exit(deploy.start(wanted, chosen, yes=yes, as_json=json))
