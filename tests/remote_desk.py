"""A person's desk beside hosts with Docker: goals, runs as they are typed, and what they leave."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.demo.checkpoint import write_checkpoint
from tests.lab.command import Desk, Done, desk
from tests.lab.engine import docker_run, engine
from tests.lab.images import image


@contextlib.contextmanager
def docker_desk(folder: Path, kept: Path) -> Iterator[Desk]:
    """Return a desk at the lab's engine, and remove what its runs have left there."""
    with desk(folder, kept) as made:
        made.env["DOCKER_HOST"] = engine()
        yield made
        for name in own(made):
            docker_run("rm", "--force", name)


def look_only(here: Desk, host: object = "local", **more: Any) -> str:
    """Write a goal that asks whether an image knows a model: no server, no weights."""
    candidate = {"image": image("transformers-4"), "engine": "custom", "serve": ["true"]}
    asked = {"kind": "diagnose", "checks": ["config_parses"], "candidates": [candidate]}
    model = str(here.folder / "model")
    return here.goal(**{**asked, "model": model, "hosts": [host], "allow": {}, **more})


def of_image(ref: str, *serve: str) -> dict[str, Any]:
    """Return a candidate with a server of the goal's own."""
    return {"image": ref, "engine": "custom", "serve": list(serve)}


def to_serve(here: Desk, *candidates: dict[str, Any], called: str = "") -> str:
    """Write a goal with servers of the goal's own, of a model that old images know too."""
    if not (folder := here.folder / "known").exists():
        write_checkpoint(folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"model_type": "llama"}))
    goal = here.goal(
        model=str(folder),
        hosts=["local"],
        candidates=list(candidates),
        checks=["process_up", "health"],
        on_interrupt="keep",
    )
    with (here.folder / goal).open("a") as file:
        file.write(f"name: {json.dumps(called)}\n")
    return goal


def own(here: Desk) -> list[str]:
    """Return the containers of all runs of this desk."""
    filters = [f"--filter=label=bringup.run={path.name}" for path in here.runs.glob("*")]
    names = [docker_run("ps", "--all", "--format", "{{.Names}}", item).split() for item in filters]
    return [name for found in names for name in found]


def ends(
    here: Desk, code: int, *words: str, title: str = "NOT REACHED", **env: str
) -> dict[str, Any]:
    """Run a command for people and for programs; return the report that both were given."""
    people, program = here.bringup(*words, **env), here.bringup(*words, "--json", **env)
    assert (people.code, program.code) == (code, code), people.err
    assert people.out == program.err == ""
    end = program.events[-1]
    assert (end["type"], end["exit_code"]) == ("run_ended", code)
    report: dict[str, Any] = end["report"]
    assert report["running"] == own(here) == [], "nothing was left behind"
    said = people.err[people.err.rindex(f"\n{title}\n") :]
    assert "Traceback" not in people.err
    assert not re.search(r"(?m)^\d\d:\d\d error: (\S+: )\1", people.err), "nothing is said twice"
    assert said.count("\n") <= 9, said
    advice = report["advice"]
    assert advice.strip() in said, "what to do is said whole"
    assert report["cause"], "a cause is named"
    return report


def told(done: Done) -> dict[str, Any]:
    """Return the report of a run in JSON Lines."""
    report: dict[str, Any] = done.events[-1]["report"]
    return report


@contextlib.contextmanager
def derived_image(line: str) -> Iterator[str]:
    """Make an image of the old one with a line more, which no build has seen before."""
    ref = f"bringup-test-{time.time_ns()}:1"
    text = f"FROM {image('transformers-4')}\n{line}\nLABEL of={ref}\n"
    docker_run("build", "--quiet", "--tag", ref, "-", stdin=text)
    try:
        yield ref
    finally:
        docker_run("rmi", "--force", ref)


@contextlib.contextmanager
def under_way(here: Desk, goal: str, until: str) -> Iterator[subprocess.Popen[str]]:
    """Begin a run, and hand it over once it has said ``until``."""
    with here.running("deploy", goal, "--mode", "auto", until=until) as process:
        yield process
