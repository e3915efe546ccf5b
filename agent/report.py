"""Writes the end of a run from its events; no word of a brain decides an outcome."""

from __future__ import annotations

import json
import shlex
from typing import Any

from agent import conflicts
from agent.dispatch import end
from agent.events import RunEnded
from agent.findings import found, open_diagnosis
from agent.fold import View
from agent.frontier import frontier
from agent.run import Run
from agent.site import Site, site_of
from agent.values import CallStatus, Outcome
from tools.connection import Connect
from tools.endpoint import ChatCheck
from tools.server import WatchServer
from tools.service_watch import WatchService

WATCHES = (WatchServer().name, WatchService().name)
EXIT_CODES = {
    Outcome.READY: 0,
    Outcome.NOT_REACHED: 1,
    Outcome.PARKED: 3,
    Outcome.LIMIT: 4,
    Outcome.UNREACHABLE: 5,
    Outcome.INTERRUPTED: 130,
}
"""Exit codes of runs; 2 is for wrong usage and never reaches a run."""


CUT_SHORT = (Outcome.LIMIT, Outcome.UNREACHABLE, Outcome.INTERRUPTED)
"""Ends that no brain has come to: the report has to say what it had found by then."""


def report(run: Run) -> None:
    """Record how the run ended; calls that it leaves behind are ended with it."""
    outcome = outcome_of(run.view)
    for name in tuple(run.view.queue):
        end(run, run.view.calls[name].call, CallStatus.CANCELLED, "not run: the run ended")
    run.record(ended(run.view, outcome))


def ended(view: View, outcome: Outcome) -> RunEnded:
    """Build the last event of a run."""
    data = build(view, outcome)
    return RunEnded(
        outcome=outcome,
        exit_code=EXIT_CODES[outcome],
        summary=_summary(view, outcome, data),
        report=data,
    )


def outcome_of(view: View) -> Outcome:
    """Say how a run stands that will not go on."""
    if view.verified:
        return Outcome.READY
    if view.error is not None:
        return Outcome.UNREACHABLE
    if view.limit is not None:
        return Outcome.LIMIT
    if any(answer.answer == "stop" for answer in view.answers.values()):
        return Outcome.INTERRUPTED
    return Outcome.NOT_REACHED


def build(view: View, outcome: Outcome) -> dict[str, Any]:
    """Gather the report: what was found, what was changed, what runs, what to do."""
    site = site_of(view)
    data: dict[str, Any] = {
        "model": site.goal.model,
        "environment": site.place,
        "checks": [
            {"name": item.name, "passed": item.passed, "text": item.text, "evidence": item.evidence}
            for item in view.checks.values()
        ],
        "fixes": [_fix(view, name) for name in view.fixes],
        "running": [*view.may_run, *view.effects.working, *view.effects.serving],
        "asked": len(view.approvals),
    }
    data |= _of_images(view)
    if outcome is Outcome.READY:
        data |= _ready(view)
    else:
        data |= _cause(view)
    if outcome in CUT_SHORT:
        data |= found(view)
    return data


def _of_images(view: View) -> dict[str, Any]:
    """What was given up, what of others was stopped, and what pip's conflicts come to."""
    candidates = view.need_goal().candidates
    data: dict[str, Any] = {
        "rejected": [
            {"candidate": candidates[number].title, "reason": reason}
            for number, reason in view.rejected.items()
        ],
        "stopped": [
            {"service": name, "restart": str(record.observation.get("restart", ""))}
            for name, record in view.effects.ended_others.items()
        ],
        "conflicts": _conflicts(view),
        "left": [name for name in view.effects.services if name not in view.effects.serving],
    }
    return {key: value for key, value in data.items() if value}


def _conflicts(view: View) -> list[dict[str, Any]]:
    """Judge pip's sentences about what was built; those that were true before are one row."""
    rows: list[dict[str, Any]] = []
    cached = {tag for tag, record in view.effects.built.items() if record.observation["cached"]}
    for tag in dict.fromkeys(view.effects.images.values()):
        if tag in cached or tag not in view.effects.built:
            words = f"{tag} was built before: pip told of conflicts then, and not now"
            rows.append({"text": words, "matters": None, "evidence": []})
    for tag, record in view.effects.built.items():
        lines = list(record.observation["conflicts"])
        judged = conflicts.judge(view, str(record.call.args["base"]), tag, lines)
        new = [item for item in judged if item.why != conflicts.BEFORE]
        rows += [
            {"text": item.text, "matters": item.matters, "evidence": list(item.evidence)}
            for item in new
        ]
        old = [item for item in judged if item.why == conflicts.BEFORE]
        if old:
            makers = ", ".join(dict.fromkeys(item.by for item in old))
            words = f"{len(old)} wishes of {makers} were not met before this change either"
            rows.append({"text": words, "matters": False, "evidence": list(old[0].evidence)})
    return rows


def _ready(view: View) -> dict[str, Any]:
    site = site_of(view)
    data: dict[str, Any] = {"seconds_to_ready": round(view.t, 1)}
    if not any(view.checks[name].passed for name in ("health", "chat") if name in view.checks):
        return data  # nothing was asked of a server, so nothing is said of one
    data["address"], on_host = _reached(view, site)
    if on_host:
        data["only_on"] = site.target
    waited = [
        float(record.observation.get("waited_s", 0.0))
        for record in view.calls.values()
        if record.call.tool in WATCHES and record.status is CallStatus.OK
    ]
    if waited:
        data["seconds_to_load"] = round(max(waited), 1)
    chat, _ = view.facts.latest(ChatCheck, fresh=False)
    if chat is not None:
        data |= {"ttft_s": chat.ttft_s, "tokens_per_s": chat.tokens_per_s}
    request = {
        "model": site.served_model,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 32,
    }
    url, header = f"{data['address']}/v1/chat/completions", "Content-Type: application/json"
    words = ["curl", url, "-H", header, "-d", json.dumps(request, ensure_ascii=False)]
    if on_host:
        words = ["ssh", site.host.address, shlex.join(words)]
    data["try"] = shlex.join(words)
    return data


def _reached(view: View, site: Site) -> tuple[str, bool]:
    """Return the server's address, and whether it is one that only its own host can use."""
    everywhere = site.goal.host in ("0.0.0.0", "::")  # noqa: S104
    if not site.remote or not everywhere:
        return site.base_url, site.remote
    seen, _ = view.facts.latest(Connect, fresh=False)
    name = seen.host if seen else site.target
    return f"http://[{name}]:{site.port}" if ":" in name else f"http://{name}:{site.port}", False


def _cause(view: View) -> dict[str, Any]:
    """Name what is in the way: what the brain gave up on, else where the checks stand."""
    if view.error is not None:
        host = view.need_goal().hosts[0]
        advice = (
            f"Once `ssh {host.address} true` works from here, run again." if host.is_remote else ""
        )
        return {"cause": view.error.text, "advice": advice, "evidence": [view.error.id]}
    gave_up = view.gave_up
    if gave_up is not None:
        args = gave_up.call.args
        return {
            "cause": args.get("cause", ""),
            "advice": args.get("advice", ""),
            "evidence": list(args.get("evidence") or ()),
        }
    cut_off = [record for record in view.failed_changes if record.status is CallStatus.UNKNOWN]
    if cut_off and not view.may_run:
        last = cut_off[-1]
        where = ", ".join(str(subject) for subject in last.touches)
        return {
            "cause": f"{last.call.tool} was cut off: {where} may be half changed",
            "advice": "The same goal again looks at what is there and goes on from it.",
            "evidence": [f"e{last.ended}"],
        }
    diagnosis = open_diagnosis(view)
    if diagnosis is not None:
        evidence = list(diagnosis.evidence)
        return {"cause": diagnosis.cause, "advice": diagnosis.plan, "evidence": evidence}
    now = frontier(view)
    if now.hypotheses:
        best = now.hypotheses[0]
        return {"cause": best.cause, "advice": best.advice, "evidence": list(best.evidence)}
    words = now.standing.verdict.text if now.standing else "nothing is known to be in the way"
    evidence = list(now.standing.evidence) if now.standing else []
    cause = f"{now.check}: {words}" if now.check else words
    return {"cause": cause, "advice": "", "evidence": evidence}


def _fix(view: View, fix_id: str) -> dict[str, Any]:
    record = view.fixes[fix_id]
    diagnosis = view.diagnosis_of(record)
    return {
        "fix": fix_id,
        "cause": diagnosis.cause,
        "plan": diagnosis.plan,
        "evidence": diagnosis.evidence,
        "verdict": record.closed.verdict if record.closed else "open",
    }


def _summary(view: View, outcome: Outcome, data: dict[str, Any]) -> str:
    if outcome is Outcome.READY:
        on = f" on {data['only_on']}" if "only_on" in data else ""
        return f"ready at {data['address']}{on}" if "address" in data else "all checks hold"
    if outcome is Outcome.LIMIT and view.limit is not None:
        return f"limit reached: {view.limit.text}; {data['cause']}"
    if outcome is Outcome.INTERRUPTED:
        return "interrupted"
    return f"not reached: {data['cause']}"
