"""The embedded brain: means-ends planning over what checks and tools declare; no list of steps.

It takes the first unmet check, the cheapest deciding look and the least risky fix of the best
hypothesis, and ends honestly where nothing is left. It knows no model, package or image: that is
data.
"""

from __future__ import annotations

from dataclasses import replace

from agent.brains.base import Reply, Request
from agent.checks import CHECKS
from agent.control import Applied, ClaimReady, GiveUp, RecordDiagnosis, UsePort
from agent.fold import View
from agent.frontier import Frontier, redo_for
from agent.kinds.base import Hypothesis
from agent.launch import server_argv, stop_call, unknown_options
from agent.records import CallRecord
from agent.site import Site, site_of
from agent.values import Purpose, ToolCall
from tools.server import ServerOptions, StartServer

SAME_LOOKS = 2
"""A look that failed so often is not tried again."""


class Playbook:
    """Decides from playbooks and facts alone."""

    name = "playbook"

    def reply(self, request: Request) -> Reply:
        """Turn where the run stands into the next calls."""
        now = request.frontier
        if now.kind == "done":
            text = "All checks hold; asking for the verdict."
            return Reply(text, (ToolCall(tool=ClaimReady().name, args={"text": text}),))
        if now.kind == "look" and now.call is not None:
            failed = request.view.failed_looks.of(now.call)
            if len(failed) >= SAME_LOOKS:
                return _cannot_tell(now, failed[-1])
            return Reply(_looking(now), (now.call.model_copy(update={"why": _looking(now)}),))
        if now.kind == "advance":
            return _advance(request.view, now)
        return _treat(request.view, now)


def _looking(now: Frontier) -> str:
    if now.hypotheses:
        best = now.hypotheses[0]
        return f"Perhaps {best.cause}. A look tells."
    return f"A look tells whether {CHECKS[now.check].says}."


def _advance(view: View, now: Frontier) -> Reply:
    site = site_of(view)
    call = _start(view, site).model_copy(
        update={"purpose": Purpose(kind="advance", ref=now.check, postcondition=now.check)}
    )
    said = [no.message for no in view.refused if no.call.same_as(call)]
    if said:
        args = {"cause": f"starting the server was refused: {said[-1]}", "advice": "Run it again."}
        return Reply("Starting it was refused.", (ToolCall(tool=GiveUp().name, args=args),))
    why = f"What it needs is there. Starting the server on port {site.port}."
    left_out = ", ".join(options_left_out(view))
    note = f" Left out, since this release does not know it: {left_out}." if left_out else ""
    return Reply(why + note, (call.model_copy(update={"why": why}),))


def _start(view: View, site: Site) -> ToolCall:
    seen, _ = view.facts.latest(ServerOptions, fresh=False)
    return ToolCall(
        tool=StartServer().name,
        args={
            "argv": list(server_argv(site, seen)),
            "env": dict(site.engine.env),
            "cwd": None,
            "host": site.goal.host,
            "port": site.port,
            "name": site.candidate.engine,
        },
        target=site.target,
    )


def _treat(view: View, now: Frontier) -> Reply:
    best = now.hypotheses[0]
    if best.fix is None:
        return _give_up(view, now, best)
    ref = f"d{len(view.diagnoses) + 1}"
    purpose = Purpose(kind="fix", ref=ref)
    steps = [
        call.model_copy(update={"purpose": purpose, "why": call.why or best.fix.text})
        for call in best.fix.calls
    ]
    redo = redo_for(now.check)
    if redo == StartServer().name and redo not in {call.tool for call in steps}:
        ports = [call.args["port"] for call in steps if call.tool == UsePort().name]
        site = replace(site_of(view), port=ports[-1]) if ports else site_of(view)
        steps += [stop_call(job, record.call) for job, record in view.may_run.items()]
        update = {"purpose": purpose, "why": "start it again"}
        steps.append(_start(view, site).model_copy(update=update))
    said = ToolCall(
        tool=RecordDiagnosis().name,
        args={
            "kind": best.kind,
            "cause": best.cause,
            "evidence": list(best.evidence),
            "check": now.check,
            "plan": best.fix.text,
        },
    )
    done = ToolCall(tool=Applied().name, args={"diagnosis": ref})
    return Reply(f"{_sentence(best.cause)} {_sentence(best.fix.text)}", (said, *steps, done))


def _give_up(view: View, now: Frontier, best: Hypothesis) -> Reply:
    args = {"cause": best.cause, "evidence": list(best.evidence), "advice": best.advice}
    text = f"{_sentence(best.cause)} Nothing here may mend that."
    return Reply(text, (ToolCall(tool=GiveUp().name, args=args),))


def _cannot_tell(now: Frontier, failed: CallRecord) -> Reply:
    cause = f"it cannot be told whether {CHECKS[now.check].says}: {failed.message}"
    if now.hypotheses:
        cause = f"{now.hypotheses[0].cause}; what would mend it cannot be told: {failed.message}"
    args = {
        "cause": cause,
        "evidence": [f"e{failed.ended}"],
        "advice": f"See all of {failed.call.tool} with `bringup show`; then run again.",
    }
    return Reply(_sentence(cause), (ToolCall(tool=GiveUp().name, args=args),))


def _sentence(text: str) -> str:
    clean = text.strip().rstrip(".")
    return clean[:1].upper() + clean[1:] + "."


def options_left_out(view: View) -> list[str]:
    """Return what the goal asks of the server and the installed release does not know."""
    seen, _ = view.facts.latest(ServerOptions, fresh=False)
    return unknown_options(site_of(view), seen) if seen else []
