"""Row 41 of the robustness list: at every limit the report says what was found by then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.engine import drive, loop
from agent.fold import View
from agent.replay import replay
from agent.session import Session
from agent.values import Outcome, Purpose, ToolCall
from tests.lab.world_packages import VENV
from tests.lab.world_runs import LOOKS, Costs, Says, call, events, goal, outcome, play
from tests.lab.worlds import MODEL, World
from tools.command import Ending, Result

DRIVERS = pytest.mark.parametrize("driver", [loop, drive], ids=["loop", "graph"])
LOOK = call("config_probe", python=f"{VENV}/bin/python", model=MODEL)
OTHER = call("port_owner", python="python3", port=8000)


def limit_of(run: Session) -> str:
    assert outcome(run) is Outcome.LIMIT
    (limit,) = events(run, "limit")
    return str(limit.name)


def report(run: Session) -> Mapping[str, Any]:
    found: Mapping[str, Any] = events(run, "run_ended")[0].report
    return found


def test_the_cause_is_named_where_one_is_known(tmp_path: Path) -> None:
    run = play(tmp_path, World(), goal(limits={"steps": 2}))
    assert limit_of(run) == "steps"
    assert "does not know the model type" in report(run)["cause"]
    assert "does not know the model type" in events(run, "run_ended")[0].summary
    assert report(run)["evidence"]


FIX = Purpose(kind="fix", ref="d1")
INSTALL = call("pip_install", FIX, python=f"{VENV}/bin/python", requirements=["einops"])
START = call(
    "start_server",
    Purpose(kind="advance", ref="process_up", postcondition="process_up"),
    argv=[f"{VENV}/bin/serve", "--port", "8000"],
)


def found_by_then(world: World, then: list[Any]) -> list[Any]:
    """A brain that finds two causes, mends the first without success, and goes on."""

    def diagnose(view: View) -> list[ToolCall]:
        seen = [f"e{r.ended}" for r in view.calls.values() if r.call.tool == LOOK.tool][-1:]
        args: dict[str, Any] = {"kind": "unknown", "check": "config_parses", "evidence": seen}
        cause = f"cause {len(view.diagnoses) + 1} of it"
        return [call("record_diagnosis", cause=cause, plan="pin it", **args)]

    first = [[LOOK], diagnose, [INSTALL, call("applied", diagnosis="d1")], [START]]
    return [*first, [LOOK], diagnose, *then]


ENDS: dict[str, tuple[dict[str, float], list[Any]]] = {
    "steps": ({"steps": 9}, LOOKS),
    "minutes": ({"minutes": 15}, [[call("wait", seconds=n)] for n in (600, 300)]),
    "tokens": ({"tokens": 9000}, LOOKS),
    "usd": ({"usd": 4.5}, LOOKS),
    "silence": ({}, [[]] * 9),
    "repetition": ({}, [[LOOK]] * 9),
    "failing": ({}, [turn for look in LOOKS for turn in ([call("nonsense")], look)]),
}


@DRIVERS
@pytest.mark.parametrize("name", ENDS)
def test_41_the_report_keeps_what_was_found(tmp_path: Path, name: str, driver: Any) -> None:
    limits, then = ENDS[name]
    world = World(load_s=math.inf)
    brain = Costs(*found_by_then(world, then))
    wanted = goal(limits={"steps": 200, "minutes": 9999} | limits)
    run = play(tmp_path, world, wanted, brain=brain, yes=True, driver=driver)
    assert limit_of(run) == name
    data = report(run)
    assert (data["cause"], data["advice"]) == ("cause 2 of it", "pin it")
    assert "cause 2 of it" in events(run, "run_ended")[0].summary
    assert [(item["cause"], item["verdict"]) for item in data["fixes"]] == [
        ("cause 1 of it", "refuted")
    ]
    assert [(item["diagnosis"], item["cause"]) for item in data["diagnoses"]] == [
        ("d2", "cause 2 of it")
    ]
    assert [(item["tool"], item["status"]) for item in data["changes"]] == [
        ("pip_install", "ok"),
        ("start_server", "ok"),
    ]
    assert data["running"] == [f"{run.folder.id}-t4.1"]
    assert data["failing"][0]["name"] == "config_parses"
    ids = {event.id for event in run.transcript.events}
    cited = [data, *data["failing"], *data["diagnoses"], *data["changes"], *data["fixes"]]
    assert all(item["evidence"] and ids >= set(item["evidence"]) for item in cited)
    for other in (loop, drive):
        assert replay(run.folder.transcript, other).difference is None


def test_41_an_interrupted_run_keeps_it_too(tmp_path: Path) -> None:
    def stop(view: View) -> list[ToolCall]:
        raise KeyboardInterrupt

    brain = Says(*found_by_then(World(), [stop]))
    run = play(tmp_path, World(load_s=math.inf), brain=brain, yes=True)
    assert outcome(run) is Outcome.INTERRUPTED
    assert [item["diagnosis"] for item in report(run)["diagnoses"]] == ["d2"]


def test_41_what_a_brain_gave_up_on_is_told_by_itself(tmp_path: Path) -> None:
    run = play(tmp_path, World(), brain=Says([LOOK], [call("give_up", cause="no")]))
    assert not {"diagnoses", "changes", "failing"} & set(report(run))


@pytest.mark.parametrize("kind", ["steps", "repetition"])
def test_the_cause_of_looks_in_vain_is_named(tmp_path: Path, kind: str) -> None:
    def broken(name: str, when: str) -> Result | None:
        return Result(Ending.EXITED, 1, stderr="no luck") if name == "config" else None

    steps = 1 if kind == "steps" else 30
    brain = Says(*([[LOOK]] * 9)) if kind == "repetition" else None
    run = play(tmp_path, World(trap=broken), goal(limits={"steps": steps}), brain=brain)
    assert limit_of(run) == kind
    assert "no luck" in report(run)["cause"]
    assert report(run)["evidence"]
