"""Do the main job here: from a broken environment to a running Qwen3.5 server.

Everything is real and small: random weights, a true architecture, this machine's CPU. Changes are
allowed inside the demo's own folder and port only, and each grant is printed. For example:

    bringup demo
    bringup demo --ask
    bringup demo --stop
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import platformdirs
import typer
from rich.console import Console

from agent import runs, settings
from agent.cli import common, deploy, stop
from agent.cli.output import complain, document, say
from agent.console_steps import Steps
from agent.demo.place import DemoError, Place, goal_of, prepare
from agent.transcript import TranscriptError

PORT = 8177


def run(
    ask: Annotated[bool, typer.Option("--ask", help="Supervised: ask before each change.")] = False,
    stop_it: Annotated[bool, typer.Option("--stop", help="Stop the demo's server.")] = False,
    brain: common.BrainName = None,
    base_url: common.BaseUrl = None,
    model: common.ModelName = None,
    mode: Annotated[
        str | None, typer.Option(help="auto (default), supervised or read-only.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the server.")] = PORT,
    folder: Annotated[Path | None, typer.Option(help="The demo's folder.")] = None,
    json: common.Json = False,
) -> None:
    """Prepare the folder, then deploy its goal."""
    place = Place((folder or default_folder()).absolute())
    if stop_it:
        raise typer.Exit(_stop(place, as_json=json))
    chosen = settings.load(
        brain=brain,
        base_url=base_url,
        model=model,
        mode="supervised" if ask else mode or "auto",
    )
    wanted = goal_of(place, port)
    runs.need_writable(runs.runs_dir(chosen))
    decider = deploy.decided_by(chosen, wanted)
    with _begun(place):
        try:
            prepare(place, chosen.torch_index, Steps(Console(stderr=True)), _agree)
        except DemoError as error:
            raise typer.Exit(complain(str(error), as_json=json, code=1)) from error
        code = deploy.start(
            wanted, chosen, yes=False, as_json=json, began=place.remember, decider=decider
        )
    raise typer.Exit(code)


def default_folder() -> Path:
    """Return where the demo lives unless told otherwise."""
    return Path(platformdirs.user_data_dir("bringup")) / "demo"


@contextmanager
def _begun(place: Place) -> Iterator[None]:
    """Keep other demos out, and end the last one's server."""
    with place.held():
        _stop_last(place)
        say(f"demo: everything is made in {place.folder}")
        yield


def _stop_last(place: Place) -> None:
    """A second demo begins where the first did: without its server."""
    last = place.last_run
    if last is None or not last.transcript.exists():
        return
    try:
        stopped, _, _ = stop.stop(last)
    except TranscriptError as error:
        say(f"demo: what the last run left may still run: {error}")
        return
    if stopped:
        say(f"demo: stopped {', '.join(stopped)}")


def _stop(place: Place, *, as_json: bool) -> int:
    """Stop what the last demo left running, and say what came of it."""
    last = place.last_run
    if last is not None and not last.transcript.exists():
        words = f"demo: its last run is gone, so what it left cannot be stopped: {last.folder}"
        return complain(words, as_json=as_json, code=1)
    stopped, left, _ = stop.stop(last) if last else ([], [], [])
    if as_json:
        document(run=last.id if last else "", stopped=stopped, left=left)
        return 1 if left else 0
    if stopped:
        say(f"demo: stopped {', '.join(stopped)}")
    elif not left:
        say("demo: its server is not running" if last else f"demo: never run in {place.folder}")
    for job in left:
        say(f"demo: {job} would not end")
    return 1 if left else 0


def _agree(question: str) -> bool:
    """Ask where there is a terminal; elsewhere the index's CPU build is what was asked for."""
    if not common.interactive():
        return True
    return typer.confirm(question, default=True, err=True)
