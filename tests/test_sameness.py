"""What counts as the same call and the same result: recorded observations, one thing changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.control import CONTROLS, Waited
from agent.records import CallRecord
from agent.sameness import call_key, end_key, same
from agent.values import CallStatus, ToolCall
from tests.lab.world_runs import call
from tools.base import Observation
from tools.logs import steady
from tools.registry import TOOLS, find

PARSERS = Path(__file__).parent / "parsers"
NO, YES = False, True
MOVES: dict[str, list[tuple[dict[str, Any], bool]]] = {
    "http_check/healthy": [({"elapsed_s": 9.5}, NO), ({"status": 503}, YES)],
    "chat_check/random_weights": [
        ({"content": "else", "completion_tokens": 7, "finish_reason": "stop"}, NO),
        ({"ttft_s": 9.0, "tokens_per_s": 1.5, "total_s": 9.9}, NO),
        ({"well_formed": False}, YES),
        ({"problem": "no choices"}, YES),
    ],
    "list_containers/running": [
        ({"containers.0.status": "Up 9 hours"}, NO),
        ({"containers.0.state": "exited"}, YES),
        ({"containers": []}, YES),
    ],
    "inspect_container/running": [
        ({"pid": 9, "started_at": "2026-11-30T12:00:00Z", "restart_count": 9}, NO),
        ({"state": "exited"}, YES),
        ({"present": False}, YES),
    ],
    "container_use/two_run_and_one_has_just_ended": [
        ({"containers.0.memory_mib": 1.1, "containers.1.cpu_percent": 0.4}, NO),
        ({"containers.1.cpu_percent": 97.0}, YES),
        ({"containers.1.memory_mib": 14.0}, YES),
        ({"containers.1.pids": 2}, YES),
        ({"containers.1.name": "other"}, YES),
    ],
    "container_logs/silent_and_computing": [
        ({"cpu_s": 3}, YES),
        ({"text": "compiled"}, YES),
        ({"lines": 2}, YES),
    ],
    "container_logs/has_ended": [({}, NO), ({"cpu_s": 0}, YES)],
    "job_logs/silent_and_computing": [
        ({}, NO),
        ({"cpu_s": 0.28}, YES),
        ({"size_bytes": 11}, YES),
        ({"state": "exited"}, YES),
    ],
    "job_status/running": [
        ({}, NO),
        ({"cpu_s": 0.02}, YES),
        ({"out_bytes": 9_999}, YES),
        ({"rss_mib": 512.5}, YES),
        ({"state": "lost"}, YES),
    ],
    "watch_server/silence_is_stuck": [
        ({"waited_s": 99.0}, NO),
        ({"cpu_s": 99.5}, YES),
        ({"progress": "Loading weights: 99%"}, YES),
    ],
    "watch_server/loads_and_becomes_healthy": [
        ({"waited_s": 9.0, "cpu_s": 99.5, "log_bytes": 99_999}, NO),
        ({"state": "undecided"}, YES),
    ],
    "watch_service/killed_for_memory": [
        ({"log_tail": "again", "restart_count": 9}, NO),
        ({"code": 1}, YES),
    ],
    "memory_free/h200_busy": [
        ({"available_mib": +100}, NO),
        ({"available_mib": -1000}, YES),
        ({"gpus.0.free_mib": 1}, YES),
    ],
    "host_facts/linux_container": [
        ({"memory_available_mib": 1, "disks.0.free_mib": 1}, NO),
        ({"disks.0.read_only": True}, YES),
    ],
    "python_environment/transformers5_with_torch": [
        ({"free_mib": 1}, NO),
        ({"versions": {}}, YES),
    ],
    "weights_state/download_unfinished": [({"free_mib": 1}, NO), ({"bytes_present": 1}, YES)],
    "shell/failed_pipe": [
        ({"how": "after 9 s", "survivors": ["77 sleep"]}, NO),
        ({"code": 9}, YES),
        ({"stdout": "else"}, YES),
    ],
    "exec_in_container/failing_command": [({}, NO), ({"code": 9}, YES), ({"err": "else"}, YES)],
}
CASES = [(name, change, moves) for name, rows in MOVES.items() for change, moves in rows]


def recorded(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((PARSERS / f"{name}.json").read_text(encoding="utf-8"))
    return dict(data["observation"])


def changed(data: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    data = json.loads(json.dumps(data))
    for path, value in change.items():
        *places, last = path.split(".")
        inner: Any = data
        for place in places:
            inner = inner[int(place)] if place.isdigit() else inner[place]
        inner[last] = inner[last] + value if last == "available_mib" else value
    return data


@pytest.mark.parametrize(("name", "change", "moves"), CASES, ids=str)
def test_a_look_that_finds_something_else(name: str, change: dict[str, Any], moves: bool) -> None:
    kind = find(name.partition("/")[0]).observation_type
    before = recorded(name)
    now = changed(before, change)
    assert not change or now != before
    assert kind.model_validate(now).unmoved(kind.model_validate(before)) is not moves


@pytest.mark.parametrize(("tool", "field"), [("shell", "stdout"), ("exec_in_container", "err")])
@pytest.mark.parametrize(("code", "moves"), [(0, True), (1, False)])
def test_numbers_count_in_what_a_command_says_unless_it_failed(
    tool: str, field: str, code: int, moves: bool
) -> None:
    kind = find(tool).observation_type
    name = {"shell": "failed_pipe", "exec_in_container": "failing_command"}[tool]
    base = recorded(f"{tool}/{name}") | {"code": code}
    before, now = (kind.model_validate(base | {field: f"pid {pid} is there"}) for pid in (7, 8))
    assert now.unmoved(before) is not moves


def classes(kind: type[Any]) -> list[type[Any]]:
    return [kind, *(sub for part in kind.__subclasses__() for sub in classes(part))]


def test_what_is_declared_exists() -> None:
    for kind in classes(Observation):
        assert set(kind.clock_fields) <= set(kind.model_fields), kind
    for tool in (*TOOLS, *CONTROLS.values()):
        assert set(tool.args_type.remarks) <= set(tool.args_type.model_fields), tool.name


STEADY = [
    ("pid 4242 died", "pid 17 died", True),
    ("[4242] cannot bind", "[17777] cannot bind", True),
    ("port 8000 is held", "port 80 is held", True),
    ("127.0.0.1:45123 refused", "127.0.0.1:51234 refused", True),
    ("at 0x7f3a2b", "at 0x55d1", True),
    ("2026-11-30T12:00:01.5Z no", "2026-11-30T12:07:59Z no", True),
    ("2026-11-30 12:00:01,123 no", "2026-12-01 00:00:00,001 no", True),
    ("12:00:01 no", "9:07:59.5 no", True),
    ("no answer within 20 s", "no answer within 21.5 s", True),
    ("/tmp/tmpa1b2c3/x.py: no", "/tmp/tmpz9y8x7/x.py: no", True),  # noqa: S108
    ("container 0821923a2d6a is gone", "container 77b0c1d2e3f4 is gone", True),
    ("id 123e4567-e89b-12d3-a456-426614174000", "id 0f0e4567-aaaa-bbbb-cccc-000014174000", True),
    ("refused this very call (e41)", "refused this very call (e99)", True),
    ("/proc/4242/fd", "/proc/51234/fd", True),
    ("exit 1: no", "exit 137: no", False),
    ("needs torch 2.13.0", "needs torch 2.14.0", False),
    ("3 of 90 files", "4 of 90 files", False),
    ("1234 of 5678 files", "2345 of 5678 files", False),
    ("45% done", "46% done", False),
    ("5.1 GB are there", "5.2 GB are there", False),
    ("12345 bytes", "23456 bytes", False),
    ("8192 MiB free", "9192 MiB free", False),
    ("no module named a", "no module named b", False),
    ("transformers 4", "transformers 5", False),
    ("facade", "decade", False),
]


@pytest.mark.parametrize(("one", "other", "alike"), STEADY)
def test_a_message_without_what_differs_each_time(one: str, other: str, alike: bool) -> None:
    assert (steady(one) == steady(other)) is alike
    assert steady(steady(one)) == steady(one)


def test_a_long_message_takes_no_long_time() -> None:
    text = "ab" * 60_000 + "1" * 60_000 + " /tmp/" * 9_000 + "0x" * 9_000 + "a1" * 40_000
    assert len(steady(text)) < len(text)


def record(asked: ToolCall, status: CallStatus = CallStatus.OK, **more: Any) -> CallRecord:
    return CallRecord(asked, turn=1, status=status, **more)


KEYS = [
    (call("port_owner", port=8000), call("port_owner", port=8001), False),
    (call("port_owner", port=8000), call("port_owner", target="b", port=8000), False),
    (call("port_owner", port=8000), call("memory_free", port=8000), False),
    (call("grep", a=1, b=2), call("grep", b=2, a=1), True),
    (call("wait", seconds=5), call("wait", seconds=600, reason="it loads"), True),
    (call("claim_ready", text="e1"), call("claim_ready", text="e9 shows it"), True),
    (call("applied", diagnosis="d1"), call("applied", diagnosis="d2"), True),
    (call("record_diagnosis", evidence=["e1"]), call("record_diagnosis", evidence=["e2"]), True),
    (call("record_diagnosis", cause="a"), call("record_diagnosis", cause="b"), False),
    (call("made_up", text="a"), call("made_up", text="b"), False),
    (call("ask", question="a?"), call("ask", question="b?"), False),
]


@pytest.mark.parametrize(("one", "other", "alike"), KEYS)
def test_calls_that_ask_for_the_same(one: ToolCall, other: ToolCall, alike: bool) -> None:
    assert (call_key(one) == call_key(other)) is alike
    why = one.model_copy(update={"id": "t9.9", "why": "another reason"})
    assert call_key(why) == call_key(one)


def test_results_that_say_the_same() -> None:
    look = call("port_owner", port=8000)
    failed = record(look, CallStatus.FAILED, message="pid 1 in the way")
    again = record(look, CallStatus.FAILED, message="pid 2 in the way")
    late = record(look, CallStatus.TIMED_OUT, message="pid 2 in the way")
    assert same(again, failed)
    assert not same(late, failed)
    assert end_key(again) == end_key(failed) != end_key(late)
    assert not same(record(look, CallStatus.FAILED, message="nobody"), failed)
    waits = [
        record(call("wait", seconds=n), observation={"text": f"waited {n} s", "waited_s": float(n)})
        for n in (5, 600)
    ]
    assert same(*waits)
    assert Waited.model_validate(waits[0].observation).headline() == "waited 5 s"
    said = [
        record(call("ask", question="a?"), observation={"text": "x", "answer": word})
        for word in ("yes", "no", "no")
    ]
    assert same(said[2], said[1])
    assert not same(said[1], said[0])
