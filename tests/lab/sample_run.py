"""A run as faces see it: a version that is too old is found, asked about, mended and proved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from agent import events as e
from agent.run import Live
from agent.values import CallStatus, FixVerdict, Outcome, Purpose, ToolCall
from tools.base import Risk, Subject

Step = e.AnyEvent | Live
ENVIRONMENT = Subject(kind="environment", key="/srv/env")
CAUSE = "transformers 4.57.6 does not know qwen3_5_text; 5.2.0 is the first that does"
PLAN = "move transformers 4.57.6 → 5.24.0; add 1 new; keep torch==2.13.0"
PROBE = "/srv/env/bin/python - @0123456789abcdef {}"
INSTALL = "/srv/env/bin/python -m pip install --progress-bar off -- transformers==5.24.0"
TRY = (
    "curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' "
    '-d \'{"model": "/srv/model", "messages": [{"role": "user", "content": "Hi"}]}\''
)
FOOTER = ["bringup show r1", "/runs/r1/transcript.jsonl"]
GOAL = {
    "kind": "serve",
    "model": "/srv/model",
    "candidates": [{"venv": "/srv/env", "engine": "transformers"}],
    "host": "127.0.0.1",
    "port": 8000,
}
ASKED = e.ApprovalAsked(
    approval_id="a1",
    call_id="t2.2",
    title="Install packages with pip.",
    command=INSTALL,
    risk=Risk.CHANGE,
    touches=(ENVIRONMENT,),
    target="local",
    why="the model needs it",
    undo="the previous versions are installed again",
    reason="supervised: every change is asked about",
)


def queued(
    call_id: str, tool: str, origin: Literal["brain", "survey", "verify", "fix_check"] = "brain"
) -> e.CallQueued:
    """Return a call that is taken up, a change where the tool is one."""
    changes = tool in {"pip_install", "start_server"}
    purpose = Purpose(kind="fix", ref="d1") if tool == "pip_install" else Purpose()
    return e.CallQueued(
        call=ToolCall(id=call_id, tool=tool, purpose=purpose),
        origin=origin,
        risk=Risk.CHANGE if changes else Risk.READ,
        touches=(ENVIRONMENT,),
        command=INSTALL if tool == "pip_install" else PROBE,
    )


def called(
    call_id: str,
    tool: str,
    message: str,
    origin: Literal["brain", "survey", "verify", "fix_check"] = "brain",
    *live: tuple[str, str],
    status: CallStatus = CallStatus.OK,
    duration_s: float = 0.3,
) -> list[Step]:
    """Return all of a call: taken up, started, what it says meanwhile, and its end."""
    ended = e.CallEnded(
        call_id=call_id, tool=tool, status=status, message=message, duration_s=duration_s
    )
    pieces = [Live(call_id, what, text) for what, text in live]
    return [queued(call_id, tool, origin), e.CallStarted(call_id=call_id), *pieces, ended]


def reply(turn: int, text: str, *tools: str) -> list[Step]:
    """Return a question to the brain and its answer."""
    calls = tuple(ToolCall(id=f"t{turn}.{n}", tool=tool) for n, tool in enumerate(tools, start=1))
    return [
        e.RequestMade(turn=turn, digest="d"),
        e.ReplyReceived(turn=turn, text=text, calls=calls),
    ]


def header() -> e.RunStarted:
    """Return the run's header."""
    return e.RunStarted(
        run_id="r1",
        started_at="2026-11-30T12:00:00+00:00",
        seed="5eed",
        version="0.1.0",
        goal=GOAL,
        brain="playbook",
        mode="supervised",
        interactive=True,
    )


def ended(outcome: Outcome, **report: Any) -> e.RunEnded:
    """Return the end of a run."""
    code = {Outcome.READY: 0, Outcome.INTERRUPTED: 130}.get(outcome, 1)
    return e.RunEnded(outcome=outcome, exit_code=code, summary=str(outcome), report=report)


def checked(name: str, text: str) -> list[Step]:
    """Return one of the goal's checks as verify runs it."""
    probe = called(f"v.{name}", "config_probe", text, "verify")
    return [*probe, e.CheckRan(name=name, passed=True, text=text, evidence=("e90",))]


CHECKS = {"config_parses": "Qwen3_5 by bare", "process_up": "pid 4711", "chat": "32 tokens"}
WEIGHTS = [("output", "@0123456789abcdef state=running\n")] + [
    ("progress", f"Loading weights: {done}%") for done in (9, 45, 80, 100)
]


def steps() -> list[Step]:
    """Return the run, step by step; pieces of output stand where they come."""
    install = called("t2.2", "pip_install", "installed transformers==5.24.0; 0 conflicts")
    pip = [Live("t2.2", "output", f"Collecting package-{n}\n") for n in range(30)]
    diagnosis = e.DiagnosisRecorded(
        diagnosis_id="d1",
        kind="version-pin",
        cause=CAUSE,
        evidence=("e12", "e15"),
        subject=ENVIRONMENT,
        check="config_parses",
        plan=PLAN,
    )
    return numbered(
        [
            header(),
            *called("s1", "host_facts", "Debian 12 x86_64, 2 CPUs, user root", "survey"),
            *called("s2", "python_environment", "Python 3.11.7, 61 packages", "survey"),
            *called("s3", "port_owner", "free", "survey"),
            *reply(1, "Not known yet: config parses.", "config_probe"),
            *called("t1.1", "config_probe", "KeyError: 'qwen3_5_text'", duration_s=4.2),
            e.HypothesisRanked(hypotheses=({"kind": "version-pin", "cause": CAUSE},)),
            *reply(2, f"{CAUSE}.", "record_diagnosis", "pip_install", "applied"),
            queued("t2.1", "record_diagnosis"),
            diagnosis,
            e.CallEnded(call_id="t2.1", tool="record_diagnosis", status=CallStatus.OK),
            install[0],
            ASKED,
            e.ApprovalAnswered(approval_id="a1", answer="yes", by="person"),
            e.FixOpened(fix_id="f1", diagnosis_id="d1", subject=ENVIRONMENT, target="local"),
            install[1],
            *pip,
            install[2],
            *called("t2.3k", "config_probe", "parses", "fix_check"),
            e.FixClosed(
                fix_id="f1",
                verdict=FixVerdict.VERIFIED,
                before="unknown-model-type",
                after="",
                evidence=("e31",),
            ),
            *reply(3, "Starting the server on port 8000.", "start_server"),
            *called("t3.1", "start_server", "job=r1-t3.1 pid=4711"),
            *reply(4, "Not known yet: health.", "watch_server"),
            *called("t4.1", "watch_server", "healthy after 12.3 s", "brain", *WEIGHTS),
            *reply(5, "All checks hold.", "claim_ready"),
            e.Claimed(text="All checks hold."),
            *(step for name, text in CHECKS.items() for step in checked(name, text)),
            ready(),
        ]
    )


def ready() -> e.RunEnded:
    """Return the end of a run that reached its goal."""
    return ended(
        Outcome.READY,
        address="http://127.0.0.1:8000",
        seconds_to_ready=83.2,
        seconds_to_load=12.3,
        ttft_s=0.214,
        tokens_per_s=14.2,
        checks=[{"name": name, "passed": True, "text": text} for name, text in CHECKS.items()],
        fixes=[{"fix": "f1", "cause": CAUSE, "verdict": "verified"}],
        running=["r1-t3.1"],
        **{"try": TRY},
    )


def numbered(run: Iterable[Step]) -> list[Step]:
    """Number and time the events of a run, as a transcript does."""
    done: list[Step] = []
    seq = 0
    for step in run:
        if not isinstance(step, Live):
            step = step.model_copy(update={"seq": seq, "t": seq * 0.5})
            seq += 1
        done.append(step)
    return done


def play(face: Any, run: Sequence[Step]) -> None:
    """Tell a face all of a run."""
    for step in run:
        if isinstance(step, Live):
            face.on_live(step)
        else:
            face.on_event(step)
