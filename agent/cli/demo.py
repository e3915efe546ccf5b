"""Do the main job here: from a broken environment to a running Qwen3.5 server.

Everything is real and small: random weights, a true architecture, this machine's CPU. Changes are
allowed inside the demo's own folder and port only, and each grant is printed. For example:

    bringup demo
    bringup demo --ask
    bringup demo --stop
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import platformdirs
import typer
from rich.console import Console

from agent import runs, settings
from agent.cli import common, deploy, stop
from agent.cli.shell import complain
from agent.console_steps import Steps
from agent.demo.place import DemoError, Place, goal_of, prepare

PORT = 8177


def run(
    ask: Annotated[bool, typer.Option("--ask", help="Supervised: ask before each change.")] = False,
    stop_it: Annotated[bool, typer.Option("--stop", help="Stop the demo's server.")] = False,
    brain: common.BrainName = None,
    mode: common.Mode = None,
    port: Annotated[int, typer.Option(help="Port of the server.")] = PORT,
    folder: Annotated[Path | None, typer.Option(help="The demo's folder.")] = None,
    json: common.Json = False,
) -> None:
    """Prepare the folder, then deploy its goal."""
    place = Place((folder or default_folder()).absolute())
    if stop_it:
        raise typer.Exit(_stop(place))
    chosen = settings.load(brain=brain, mode="supervised" if ask else mode or "auto")
    _stop_last(place)
    _say(f"everything is made in {place.folder}")
    try:
        prepare(place, chosen.torch_index, Steps(Console(stderr=True)), _agree)
    except DemoError as error:
        raise typer.Exit(complain(str(error), as_json=json, code=1)) from error
    wanted = goal_of(place, port)
    code = deploy.start(wanted, chosen, yes=False, as_json=json, began=_remember(place))
    raise typer.Exit(code)


def default_folder() -> Path:
    """Return where the demo lives unless told otherwise."""
    return Path(platformdirs.user_data_dir("bringup")) / "demo"


def _remember(place: Place) -> deploy.Began:
    def began(run_id: str) -> None:
        place.last_run.write_text(run_id + "\n", encoding="utf-8")

    return began


def _last(place: Place) -> runs.RunFolder | None:
    if not place.last_run.exists():
        return None
    name = place.last_run.read_text(encoding="utf-8").strip()
    try:
        return runs.find_run(runs.runs_dir(settings.load()), name)
    except runs.RunError:
        return None


def _stop(place: Place) -> int:
    folder = _last(place)
    if folder is None:
        _say("no demo has been run")
        return 0
    stopped, left = stop.stop(folder)
    _say(f"stopped {', '.join(stopped)}" if stopped else "the demo's server is not running")
    for job in left:
        _say(f"{job} would not end")
    return 1 if left else 0


def _stop_last(place: Place) -> None:
    """A second demo begins where the first did: without its server."""
    if _last(place) is not None:
        _stop(place)


def _say(text: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"demo: {text}\n".encode(encoding, "replace").decode(encoding))
    sys.stderr.flush()


def _agree(question: str) -> bool:
    """Ask where there is a terminal; elsewhere the index's CPU build is what was asked for."""
    if not common.interactive():
        return True
    return typer.confirm(question, default=True, err=True)
