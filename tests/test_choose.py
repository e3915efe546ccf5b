"""Who decides: by settings, a run's header, or flags; and what of an endpoint is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent import settings
from agent.asking import DeciderChanged
from agent.brains import choose
from agent.brains.choose import Asked, Choice, UnknownBrain, chosen_by, chosen_then
from agent.engine import drive
from agent.events import RunStarted
from agent.goal import Goal
from agent.replay import replay
from agent.settings import Settings
from agent.values import Purpose
from tests.lab import sample_run
from tests.lab.stub_model import serving
from tests.lab.world_runs import Says, call, events, goal, play, take_up
from tests.lab.worlds import World
from tests.model_runs import brain, said

GPU_BOX = "http://gpu-box:8000/v1"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def header(**more: Any) -> RunStarted:
    return sample_run.header().model_copy(update=more)


def test_a_key_alone_selects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    monkeypatch.setenv("OPENAI_BASE_URL", GPU_BOX)
    assert chosen_by(Settings()) == Choice("playbook")
    assert chosen_by(Settings(model="m")) == Choice("openai", GPU_BOX, "m")
    assert chosen_by(Settings(model="m", brain="playbook")) == Choice("playbook")


@pytest.mark.parametrize(
    ("given", "words"),
    [({"brain": "openai"}, "--model"), ({"brain": "gpt"}, "known: playbook, openai")],
)
def test_what_is_missing_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(UnknownBrain, match=words):
        chosen_by(Settings.model_validate(given))


BEGUN = {"base_url": GPU_BOX, "model": "qwen"}
RESUMED = {
    "as it was begun": (Asked(), Choice("openai", GPU_BOX, "qwen")),
    "another model of that endpoint": (Asked(model="m"), Choice("openai", GPU_BOX, "m")),
    "another endpoint": (Asked(base_url="http://b/v1"), Choice("openai", "http://b/v1", "qwen")),
    "the same by name": (Asked(brain="openai"), Choice("openai", GPU_BOX, "qwen")),
    "the playbook": (Asked(brain="playbook"), Choice("playbook")),
}


@pytest.mark.parametrize(("asked", "wanted"), RESUMED.values(), ids=RESUMED)
def test_a_run_goes_on_where_it_was_asked(asked: Asked, wanted: Choice) -> None:
    """A private run is never sent to another endpoint than a flag names."""
    settings_of_today = Settings(model="of-today", base_url="http://other/v1")
    then = header(brain="openai", endpoint=BEGUN)
    assert chosen_then(then, settings_of_today, asked) == wanted


def test_a_model_may_take_over_from_the_playbook() -> None:
    assert chosen_then(header(), Settings(), Asked()) == Choice("playbook")
    taken = chosen_then(header(), Settings(), Asked(model="m", base_url=GPU_BOX))
    assert taken == Choice("openai", GPU_BOX, "m")


def test_no_key_of_an_address_is_written_down() -> None:
    choice = Choice("openai", "https://me:pw@gw.example/v1?api-key=0123#x", "m")
    assert choice.endpoint == {"base_url": "https://gw.example/v1", "model": "m"}


def test_money_needs_a_price_and_tools_need_to_exist() -> None:
    wanted: Goal = goal(limits={"usd": 1.0})
    with pytest.raises(UnknownBrain, match="price for m"):
        choose.brain_of(Choice("openai", GPU_BOX, "m"), Settings(), wanted, lambda _: None)
    chosen = Settings(model_tools=("pip_instal",))
    with pytest.raises(UnknownBrain, match="pip_install"):
        choose.brain_of(Choice("openai", GPU_BOX, "m"), chosen, None, lambda _: None)


def test_the_flag_answers_no_model_that_took_over(tmp_path: Path) -> None:
    """What a person allowed the playbook beforehand is not allowed to another brain."""
    world = World()
    look = call("grep", pattern="x", path="/y")
    ask = call("ask", question="Go on?", choices=["yes", "no"])
    parked = play(tmp_path, world, brain=Says([look], [ask]), mode="supervised", yes=True)
    args = {"python": "/srv/env/bin/python", "requirements": ["evil-pkg==1.0"]}
    order = said("", [("pip_install", {**args, "purpose": "advance config_parses"})])
    with serving([order, order, order]) as stub, brain(stub) as model:
        taken = take_up(parked.folder, world, model)
        taken.run.record(DeciderChanged(brain="openai", endpoint=BEGUN))
        drive(taken.run, lambda asked: {item.approval_id: "yes" for item in asked[:1]})
        taken.close()
    asked_for = [event for event in events(taken, "approval_asked") if "evil" in event.command]
    assert asked_for
    answers = events(taken, "approval_answered")
    by = {event.by for event in answers if event.approval_id == asked_for[0].approval_id}
    assert by <= {"person"}
    assert replay(taken.transcript.path).difference is None
    assert Purpose(kind="advance").ref == ""
    assert settings.model_key() == ""
