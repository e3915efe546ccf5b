"""The goal: every mistake in it is one clear line, and its paths are where its file is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from agent.approval import policy_for
from agent.check import spare_ports
from agent.checks import CHECKS
from agent.events import RunStarted
from agent.fold import View
from agent.goal import CHECK_NAMES, DEFAULT_CHECKS, Goal, GoalError, load_goal, parse_goal
from agent.site import site_of

BASE: dict[str, Any] = {"model": "./m", "candidates": [{"venv": "env"}]}


def parsed(base: Path = Path("/base"), **more: Any) -> Goal:
    return parse_goal({**BASE, **more}, base=base, where="goal.yaml")


def refused(data: dict[Any, Any]) -> str:
    with pytest.raises(GoalError) as caught:
        parse_goal(data, base=Path("/base"), where="goal.yaml")
    text = str(caught.value)
    assert text.startswith("goal.yaml: ")
    assert "\n" not in text
    assert "tuple" not in text.lower()
    return text


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"modle": "x"}, "unknown key `modle`; did you mean `model`?"),
        ({"Port": 1}, "unknown key `Port`; did you mean `port`?"),
        ({"candidates": [{"venv": "e", "engin": "x"}]}, "`candidates.0.engin`; did you mean `eng"),
        ({"hosts": [{"nmae": "a"}]}, "`hosts.0.nmae`; did you mean `name`?"),
        ({"allow": {"port": ["1"]}}, "`allow.port`; did you mean `ports`?"),
        ({"allow": {"download": 1}}, "`allow.download`; did you mean `download_mb`?"),
        ({"limits": {"step": 1}}, "`limits.step`; did you mean `steps`?"),
        ({"qqqqqqqq": 1}, "unknown key `qqqqqqqq`; known: allow, candidates, checks"),
        ({"checks": ["helth"]}, "unknown check `helth`; did you mean `health`?"),
        ({"checks": ["qqqqq"]}, "unknown check `qqqqq`; known: architecture_resolves"),
        ({"candidates": [{"venv": "e", "engine": "vlm"}]}, "unknown engine `vlm`; did you mean"),
    ],
)
def test_a_typing_mistake_names_the_nearest_word(more: dict[str, Any], says: str) -> None:
    assert says in refused({**BASE, **more})


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"model": 5}, "model: input should be a valid string (got 5)"),
        ({"model": ""}, "model: string should have at least 1 character"),
        ({"model": None}, "model: "),
        ({"candidates": []}, "candidates: list should have at least 1 item"),
        ({"candidates": {"venv": "e"}}, "candidates: input should be a valid list"),
        ({"candidates": [{"venv": ""}]}, "a candidate names either `venv` or `image`"),
        ({"checks": ["memory_free"]}, "the check `memory_free` is for images"),
        ({"candidates": [{"venv": "e", "image": "i"}]}, "names either `venv` or `image`"),
        ({"candidates": [{"image": "-v/:/x"}]}, "candidates.0.image: "),
        ({"candidates": [{"venv": ["e"]}]}, "candidates.0.venv: input should be a valid string"),
        ({"candidates": [{}]}, "candidates.0: a candidate names either `venv` or `image`"),
        ({"candidates": [{"venv": "e", "engine": "custom"}]}, "`custom` needs `serve`"),
        ({"hosts": []}, "hosts: list should have at least 1 item"),
        ({"hosts": ["spark-1"]}, "./m: a path on spark-1 has to be absolute"),
        ({"hosts": ["-oProxyCommand=x"], "model": "/m"}, "-oProxyCommand=x"),
        ({"model": "o/n", "candidates": [{"image": "i"}]}, "`models` has to name a folder"),
        ({"model": "m n", "candidates": [{"image": "i"}]}, "neither a path nor a hub's name"),
        ({"hosts": "local"}, "hosts: input should be a valid list"),
        ({"checks": "health"}, "checks: input should be a valid list (got 'health')"),
        ({"port": 0}, "port: input should be greater than or equal to 1"),
        ({"port": 65536}, "port: input should be less than or equal to 65535"),
        ({"port": "eight"}, "port: input should be a valid integer"),
        ({"limits": {"steps": 0}}, "limits.steps: input should be greater than 0"),
        ({"limits": {"minutes": -1}}, "limits.minutes: "),
        ({"limits": {"minutes": math.nan}}, "limits.minutes: "),
        ({"limits": 5}, "limits: "),
        (
            {"kind": "srve"},
            "kind: input should be 'serve', 'train', 'diagnose' or 'provision' (got 'srve')",
        ),
        ({"kind": "train"}, "kind: train is not built yet"),
        ({"on_interrupt": "ask"}, "on_interrupt: input should be 'keep' or 'stop'"),
        ({"options": {"dtype": ["a"]}}, "options.dtype"),
        ({"options": {1: "a"}}, "options.1"),
        ({1: 2}, "1: keys should be strings"),
        ({"allow": {"paths": ["~nobody-at-all/x"]}}, "~nobody-at-all/x: there is no such user"),
        ({"model": "~nobody-at-all/x"}, "~nobody-at-all/x: there is no such user"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(more: dict[Any, Any], says: str) -> None:
    assert says in refused({**BASE, **more})


@pytest.mark.parametrize("key", ["model", "candidates"])
def test_what_is_needed_is_asked_for(key: str) -> None:
    data = {name: value for name, value in BASE.items() if name != key}
    assert refused(data) == f"goal.yaml: the key `{key}` is missing"


@pytest.mark.parametrize(
    ("given", "ports"),
    [
        ([8001], ("8001",)),
        (["8001"], ("8001",)),
        (["8001-8003"], ("8001-8003",)),
        ([1, "65535", "8000-8000"], ("1", "65535", "8000-8000")),
    ],
)
def test_ports(given: list[Any], ports: tuple[str, ...]) -> None:
    assert parsed(allow={"ports": given}).allow.ports == ports


@pytest.mark.parametrize(
    "port",
    [0, -1, 65536, 70000, True, 1.5, None, "", "a", "1-", "-1", "8010-8001", "1-2-3", "1 - 2", "٣"],
)
def test_what_is_no_port(port: Any) -> None:
    text = refused({**BASE, "allow": {"ports": [port]}})
    assert "allow.ports.0: " in text
    assert "8001-8010" in text


@pytest.mark.parametrize(
    ("port", "given", "spare"),
    [
        (8000, ["8001-8003"], (8001, 8002, 8003)),
        (8000, ["8000", "9000"], (9000,)),
        (8000, ["1-65535"], tuple(range(1, 21))),
        (65535, [], ()),
        (65530, [], (65531, 65532, 65533, 65534, 65535)),
    ],
)
def test_spare_ports_are_those_that_are_allowed_or_near(
    port: int, given: list[str], spare: tuple[int, ...]
) -> None:
    wanted = parsed(port=port, allow={"ports": given})
    header = RunStarted(
        run_id="r",
        started_at="",
        seed="",
        version="",
        goal=wanted.model_dump(mode="json"),
        brain="",
        mode="auto",
        interactive=False,
    )
    assert spare_ports(site_of(View([header]))) == spare


def test_paths_are_taken_from_the_place_of_the_goal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    places = {"candidates": [{"venv": "../env"}], "allow": {"paths": ["./a/../b", "~/c", "/d/"]}}
    goal = parsed(tmp_path / "goals", **places)
    assert goal.model == str(tmp_path / "goals" / "m")
    assert goal.candidates[0].venv == str(tmp_path / "env")
    assert goal.allow.paths == (str(tmp_path / "goals" / "b"), "/home/alice/c", "/d")
    assert policy_for(goal, "auto").paths == goal.allow.paths


@pytest.mark.parametrize(
    ("model", "there", "expected"),
    [
        ("./m", False, "{base}/m"),
        ("m", True, "{base}/m"),
        ("m", False, "m"),
        ("Qwen/Qwen3.5", False, "Qwen/Qwen3.5"),
        ("Qwen/Qwen3.5", True, "{base}/Qwen/Qwen3.5"),
        ("sub/config.json", False, "{base}/sub/config.json"),
        ("/srv/m", False, "/srv/m"),
        ("~/m", False, "/home/alice/m"),
    ],
)
def test_a_model_is_a_path_or_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, there: bool, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    if there:
        (tmp_path / model).mkdir(parents=True)
    assert parsed(tmp_path, model=model).model == expected.format(base=tmp_path)


def test_a_relative_goal_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("goal.yaml").write_text("model: ./m\ncandidates: [{venv: env}]\n", encoding="utf-8")
    goal = load_goal(Path("goal.yaml"))
    assert (goal.model, goal.candidates[0].venv) == (str(tmp_path / "m"), str(tmp_path / "env"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("model: [x\ncandidates: 1\n", ", line 2: "),
        ("model: x\n\tport: 1\n", ", line 2: found character '\\t' that cannot start any token"),
        ("model: !!python/object:os.system {}\n", ", line 1: could not determine a constructor"),
        ("model: a\n---\nmodel: b\n", ", line 2: but found another document"),
        ("- model\n", ": a goal is a mapping of keys"),
        ("just words\n", ": a goal is a mapping of keys"),
        ("", ": a goal is a mapping of keys"),
        ("# nothing\n", ": a goal is a mapping of keys"),
        ("model: \x01\n", ": not valid YAML"),
        ("since: 2026-99-99\n", ": not valid YAML"),
        ("[" * 5000, ": not valid YAML"),
        (b"model: \xff\xfe\n", ": cannot read the goal file: not UTF-8"),
        ("model: x\nmodell: y\n", ": unknown key `modell`; did you mean `model`?"),
    ],
)
def test_a_file_that_is_no_goal(tmp_path: Path, content: str | bytes, says: str) -> None:
    path = tmp_path / "goal.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(GoalError) as caught:
        load_goal(path)
    assert str(caught.value).startswith(f"{path}{says}")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(GoalError, match=r"none\.yaml: cannot read the goal file: No such file"):
        load_goal(tmp_path / "none.yaml")
    with pytest.raises(GoalError, match="cannot read the goal file: Is a directory"):
        load_goal(tmp_path)


def test_the_least_goal_is_whole() -> None:
    goal = parsed()
    assert goal.all_checks == DEFAULT_CHECKS["serve"]
    image = parsed(candidates=[{"image": "i"}])
    assert image.all_checks == ("architecture_resolves", *DEFAULT_CHECKS["serve"])
    assert parsed(checks=["imports"]).all_checks == ("imports",)
    assert parsed(kind="diagnose").all_checks == ("config_parses",)
    assert [host.name for host in goal.hosts] == ["local"]
    assert [host.address for host in parsed(hosts=["local"]).hosts] == ["local"]
    assert set(CHECK_NAMES) <= set(CHECKS)
    assert parse_goal(goal.model_dump(mode="json"), base=Path("/x"), where="again") == goal
