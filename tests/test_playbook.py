"""The embedded brain: whole runs on simulated hosts, judged by what was done there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent.checks import CHECKS
from agent.frontier import establishers, redo_for
from agent.image_checks import IMAGE_CHECKS
from agent.report import EXIT_CODES
from agent.session import Session
from agent.values import Outcome
from agent.venv_checks import VENV_CHECKS
from tests.lab.world_packages import VENV, Need, old_transformers
from tests.lab.world_runs import events, goal, outcome, play, say
from tests.lab.worlds import World
from tests.test_house_rules import WITHOUT_NAMES, names_in_playbooks
from tools.base import Risk
from tools.registry import TOOLS


def modern(**more: Any) -> World:
    """A host where everything is there."""
    world = World(**more)
    world.versions["transformers"] = "5.24.0"
    return world


def plain(done: Iterable[str]) -> list[str]:
    """What was changed, without the names of runs."""
    return [re.sub(r" \S+-(t[\d.]+)$", r" \1", item) for item in done]


def called(run: Session) -> list[str]:
    """The tools that the brain used, in order."""
    return [record.call.tool for record in run.run.view.calls.values() if record.origin == "brain"]


def test_what_is_fine_is_left_alone(tmp_path: Path) -> None:
    world = modern()
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    assert plain(world.done) == ["start t4.1"]
    assert events(run, "diagnosis") == []


def test_an_old_package_is_raised_by_the_smallest_change(tmp_path: Path) -> None:
    world = World()
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    assert plain(world.done) == ["install transformers==5.24.0", "start t7.1"]
    install = next(c for c in run.run.view.calls.values() if c.call.tool == "pip_install")
    assert install.call.args["constraints"] == ["torch==2.13.0"]
    assert world.versions["torch"] == "2.13.0"


def test_a_release_that_satisfies_the_number_and_still_fails(tmp_path: Path) -> None:
    world = World()
    world.versions["transformers"] = "5.0.0"
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    assert "install transformers==5.24.0" in world.done


def test_pip_comes_first_where_it_is_missing(tmp_path: Path) -> None:
    world = World(pip=False)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    expected = ["install pip", "install transformers==5.24.0", "start t9.1"]
    assert plain(world.done) == expected


def test_a_missing_module_is_installed_before_the_start(tmp_path: Path) -> None:
    world = modern(index={"uvicorn": ["0.41.0"]})
    del world.versions["uvicorn"]
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    assert [item.split()[0] for item in world.done] == ["install", "start"]


def test_a_server_that_stumbles_is_mended_and_started_again(tmp_path: Path) -> None:
    world = modern(server_needs=(Need("einops"),))
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    assert plain(world.done) == ["start t4.1", "install einops==0.8.1", "start t8.3"]
    assert list(run.run.view.may_run) == [f"{run.folder.id}-t8.3"]


def test_a_server_that_hangs_is_ended_before_it_is_started_again(tmp_path: Path) -> None:
    world = modern(server_needs=(Need("einops"),), lingers=True)
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.READY
    assert plain(world.done) == ["start t4.1", "install einops==0.8.1", "stop t4.1", "start t8.4"]
    assert sum(job.runs(world.now) for job in world.jobs.values()) == 1


SPARE = {"paths": [VENV], "ports": ["8001-8003"]}


def test_a_held_port_is_left_to_its_owner(tmp_path: Path) -> None:
    world = modern(held={8000: "nginx", 8001: "redis"})
    run = play(tmp_path, world, goal(allow=SPARE))
    assert outcome(run) is Outcome.READY
    assert events(run, "run_ended")[0].report["address"] == "http://127.0.0.1:8002"
    assert world.count("stop") == 0


def test_another_port_needs_leave(tmp_path: Path) -> None:
    world = modern(held={8000: "nginx"})
    run = play(tmp_path / "1", world)
    assert outcome(run) is None
    (asked,) = run.run.view.pending_approvals
    assert asked.title == "Use port 8001 instead."
    assert "nginx" in asked.why
    run = play(tmp_path / "2", world, interactive=True, answer=say("no"))
    assert outcome(run) is Outcome.NOT_REACHED
    assert "nginx" in events(run, "run_ended")[0].report["cause"]
    assert world.done == []


def test_a_port_that_is_taken_in_the_last_moment(tmp_path: Path) -> None:
    world = modern()

    def taken(name: str, when: str) -> None:
        if name == "job_start" and not world.jobs:
            world.held[8000] = "nginx"

    world.trap = taken
    run = play(tmp_path, world, goal(allow=SPARE))
    assert outcome(run) is Outcome.READY
    assert [job.port for job in world.jobs.values()] == [8000, 8001]


def test_a_server_that_dies_after_the_claim_is_not_ready(tmp_path: Path) -> None:
    world = modern()

    def dies(name: str, when: str) -> None:
        if name == "endpoint" and when == "after":
            for job in world.jobs.values():
                job.stopped_at = min(job.stopped_at, world.now)

    world.trap = dies
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    checks = {check.name: check.passed for check in events(run, "check")}
    assert checks == {"config_parses": True, "process_up": False, "health": None, "chat": None}
    assert events(run, "run_ended")[0].report["running"] == []


def test_a_question_about_the_environment_starts_nothing(tmp_path: Path) -> None:
    world = World()
    run = play(tmp_path, world, goal(kind="diagnose"))
    assert outcome(run) is Outcome.READY
    assert plain(world.done) == ["install transformers==5.24.0"]


def test_an_engine_of_ones_own_is_started_as_it_is_told(tmp_path: Path) -> None:
    serve = ["{python}", "-m", "mine", "--port", "{port}", "--extra", '{"a": {"b": 1}}']
    candidate = {"venv": VENV, "engine": "custom", "serve": serve, "health": "/up"}
    world = modern()
    run = play(tmp_path, world, goal(candidates=[candidate], options={}))
    assert outcome(run) is Outcome.READY
    (job,) = world.jobs.values()
    expected = (f"{VENV}/bin/python", "-m", "mine", "--port", "8000", "--extra", '{"a": {"b": 1}}')
    assert job.argv == expected
    assert "help" not in world.asked


def test_options_that_a_release_does_not_know_are_left_out(tmp_path: Path) -> None:
    world = modern()
    run = play(tmp_path, world, goal(options={"device": "cpu", "warp-factor": 9}))
    assert outcome(run) is Outcome.READY
    (job,) = world.jobs.values()
    assert "--device" in job.argv
    assert "--warp-factor" not in job.argv


def test_the_report_holds_what_was_done_and_proved(tmp_path: Path) -> None:
    world = World()
    run = play(tmp_path, world)
    (ended,) = events(run, "run_ended")
    report = ended.report
    assert ended.exit_code == EXIT_CODES[Outcome.READY] == 0
    assert ended.summary == "ready at http://127.0.0.1:8000"
    assert [check["name"] for check in report["checks"]] == list(goal().all_checks)
    assert all(check["passed"] and check["evidence"] for check in report["checks"])
    assert [fix["verdict"] for fix in report["fixes"]] == ["verified"]
    assert report["running"] == [f"{run.folder.id}-t7.1"]
    assert report["tokens_per_s"] == 5.0


def test_no_step_is_taken_twice_without_news(tmp_path: Path) -> None:
    world = World(config_needs=(old_transformers(), Need("einops")))
    run = play(tmp_path, world)
    asked = [
        (event.call.tool, str(event.call.args), len(events_before(run, event.seq)))
        for event in events(run, "call_queued")
        if event.origin == "brain" and event.risk is Risk.READ
    ]
    assert len(asked) == len(set(asked)), "a look is repeated after a change only"


def events_before(run: Session, seq: int) -> list[Any]:
    """The changes that had ended before an event."""
    changes = {record.call.id for record in run.run.view.calls.values() if record.had_effect}
    ended = events(run, "call_ended")
    return [event for event in ended if event.seq < seq and event.call_id in changes]


def test_a_pip_that_needs_pip_to_be_mended_is_an_honest_stop(tmp_path: Path) -> None:
    world = World(pip=False, pip_error="ModuleNotFoundError: No module named 'yaml'")
    run = play(tmp_path, world)
    assert outcome(run) is Outcome.NOT_REACHED
    (ended,) = events(run, "run_ended")
    assert "yaml" in ended.report["cause"]
    assert world.done == []


def test_all_that_tools_declare_is_known() -> None:
    named = {name for tool in TOOLS for name in (*tool.needs, *tool.establishes)}
    for table in (VENV_CHECKS, IMAGE_CHECKS):
        needed = {name for check in table.values() for name in check.needs}
        assert needed <= set(table)
        assert needed
    assert named <= set(CHECKS)
    assert named


def test_plans_come_from_what_tools_declare(tmp_path: Path) -> None:
    view = play(tmp_path, modern()).run.view
    assert [tool.name for tool in establishers(view, "process_up")] == ["start_server"]
    assert establishers(view, "config_parses") == []
    for check in ("chat", "health", "process_up"):
        assert redo_for(view, check) == "start_server"
    assert redo_for(view, "config_parses") == ""


def test_the_rule_against_names_bites(tmp_path: Path) -> None:
    """The search of ``test_house_rules`` finds a name where there is one."""
    root = Path(__file__).parent.parent
    words = "|".join(map(re.escape, sorted(names_in_playbooks())))
    rule = re.compile(rf"(?i)(?<![a-z.])({words})(?![a-z])")
    assert len(WITHOUT_NAMES) == 2
    for name in WITHOUT_NAMES:
        text = (root / name).read_text(encoding="utf-8")
        assert not rule.search(text)
        for added in ('if package == "transformers":', "vllm = 1", "# Qwen3.5 needs it", "torch"):
            assert rule.search(f"{text}\n{added}\n"), added
