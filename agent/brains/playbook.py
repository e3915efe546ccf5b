"""The embedded brain: means-ends planning over what checks and tools declare; no list of steps.

It takes the first unmet check, the cheapest deciding look and the least risky fix of the best
hypothesis, and ends honestly where nothing is left. It knows no model, package or image: that is
data.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agent.advance import STARTERS, call_to
from agent.brains.base import Reply, Request
from agent.calls import full
from agent.checks import CHECKS, check_of
from agent.control import (
    Applied,
    ClaimReady,
    GiveUp,
    RecordDiagnosis,
    UseCandidate,
    UseImage,
    UsePort,
)
from agent.diagnose import REFUSED
from agent.fold import View
from agent.frontier import Frontier, redo_for
from agent.image_checks import answers_of
from agent.kinds.base import Hypothesis
from agent.launch import stop_call, unknown_options
from agent.records import CallRecord
from agent.site import Site, site_of
from agent.values import CallStatus, Purpose, ToolCall
from tools.image_build import BuildImage
from tools.image_pull import PullImage
from tools.server_options import ServerOptions

SAME_LOOKS = 2
"""A look that failed so often is not tried again."""


class Playbook:
    """Decides from playbooks and facts alone."""

    name = "playbook"

    def reply(self, request: Request) -> Reply:
        """Turn where the run stands into the next calls."""
        return _not_accepted(request.view) or self.plan(request)

    def plan(self, request: Request) -> Reply:
        """Say what would be next, whoever made the last turn's calls."""
        now = request.frontier
        if now.kind == "done":
            text = "All checks hold; asking for the verdict."
            return Reply(text, (ToolCall(tool=ClaimReady().name, args={"text": text}),))
        if now.kind == "look" and now.call is not None:
            failed = request.view.failed_looks.of(now.call)
            if len(failed) >= SAME_LOOKS:
                return _cannot_tell(now, failed[-1])
            if _goes_round(request.view, now.call):
                return _undecided(now)
            return Reply(_looking(now), (now.call.model_copy(update={"why": _looking(now)}),))
        if now.kind == "advance":
            return _advance(request.view, now)
        return _treat(request.view, now)


def _not_accepted(view: View) -> Reply | None:
    """Give up where a call of the last turn was none: it would be none the next time too."""
    for name in view.turns.get(view.turn, ()):
        record = view.calls[name]
        if record.status is CallStatus.INVALID and record.call.tool != Applied().name:
            args = {
                "cause": f"the goal asks for what {record.call.tool} cannot do: {record.message}",
                "advice": "Change that in the goal, then run it again.",
            }
            return Reply(_sentence(args["cause"]), (ToolCall(tool=GiveUp().name, args=args),))
    return None


def _looking(now: Frontier) -> str:
    if now.hypotheses:
        best = now.hypotheses[0]
        return f"Perhaps {best.cause}. A look tells."
    return f"A look tells whether {CHECKS[now.check]}."


def _advance(view: View, now: Frontier) -> Reply:
    site = site_of(view)
    call = call_to(view, site, now.tool)
    purpose = Purpose(kind="advance", ref=now.check, postcondition=now.check)
    call = call.model_copy(update={"purpose": purpose})
    said = [no.message for no in view.refused if no.call.same_as(full(call))]
    if said:
        what = _REFUSED.get(now.tool, f"{now.tool} was refused")
        if now.tool == PullImage().name and untried(view):
            return _turn_to_next(view, f"{what}: {said[-1]}")
        args = {"cause": f"{what}: {said[-1]}", "advice": "Run it again."}
        text = what[:1].upper() + what[1:] + "."
        return Reply(text, (ToolCall(tool=GiveUp().name, args=args),))
    why = call.why
    left_out = ", ".join(options_left_out(view)) if now.tool in STARTERS else ""
    note = f" Left out, since this release does not know it: {left_out}." if left_out else ""
    return Reply(why + note, (call,))


_REFUSED = {
    "start_server": "starting the server was refused",
    "start_service": "starting the server was refused",
    "pull_image": "pulling the image was refused",
    "fetch_config": "fetching the config was refused",
    "fetch_weights": "fetching the weights was refused",
}


def _treat(view: View, now: Frontier) -> Reply:
    best = now.hypotheses[0]
    if best.fix is None:
        return _next_candidate(view, now, best) or _give_up(view, now, best)
    ref = f"d{len(view.diagnoses) + 1}"
    purpose = Purpose(kind="fix", ref=ref)
    steps = [
        call.model_copy(update={"purpose": purpose, "why": call.why or best.fix.text})
        for call in best.fix.calls
    ]
    redo = redo_for(view, now.check)
    if redo in STARTERS and redo not in {call.tool for call in steps}:
        site = _changed(site_of(view), steps)
        steps += _stops(view)
        update = {"purpose": purpose, "why": "start it again"}
        steps.append(call_to(view, site, redo).model_copy(update=update))
    said = _diagnosis(best, now.check, best.fix.text)
    done = ToolCall(tool=Applied().name, args={"diagnosis": ref})
    changes = [call for call in steps if call.tool not in CHOICES]
    closing = (done,) if changes else ()
    return Reply(f"{_sentence(best.cause)} {_sentence(best.fix.text)}", (said, *steps, *closing))


def _changed(site: Site, steps: list[ToolCall]) -> Site:
    """Return the site as it is once these calls are done: another port, another image."""
    for call in steps:
        if call.tool == UsePort().name:
            site = replace(site, port=call.args["port"])
        elif call.tool == UseImage().name:
            site = replace(site, image=call.args["image"])
        elif call.tool == BuildImage().name:
            site = replace(site, image=call.args["tag"])
    return site


CHOICES = (UseImage().name, UseCandidate().name)
"""Control tools that change nothing on a host."""


def _diagnosis(best: Hypothesis, check: str, plan: str) -> ToolCall:
    return ToolCall(
        tool=RecordDiagnosis().name,
        args={
            "kind": best.kind,
            "cause": best.cause,
            "evidence": list(best.evidence),
            "check": check,
            "plan": plan,
        },
    )


def _stops(view: View) -> list[ToolCall]:
    """End what this run has started and may still run."""
    jobs = [stop_call(job, record.call) for job, record in view.may_run.items()]
    own = view.effects.services
    return jobs + [stop_call(name, own[name].call) for name in view.effects.serving]


def _next_candidate(view: View, now: Frontier, best: Hypothesis) -> Reply | None:
    """Go on with the next candidate where the failure is this one's own; ``None``: none is left."""
    rest = untried(view)
    of_image = best.kind == "missing-module"  # what the image lacks, another may have
    if not rest or not (check_of(view, now.check).of_candidate or of_image):
        return None
    evidence = now.standing.evidence if now.standing else ()
    cited = replace(best, evidence=tuple(dict.fromkeys((*best.evidence, *evidence))))
    reply = _turn_to_next(view, _with_refusal(best))
    diagnosis = _diagnosis(cited, now.check, reply.calls[-1].why)
    return replace(reply, calls=(diagnosis, *reply.calls))


def _with_refusal(best: Hypothesis) -> str:
    """Return the cause, with what a person did not want done about it."""
    refused = best.advice.startswith(REFUSED)
    return f"{best.cause}. {best.advice}" if refused else best.cause


def _turn_to_next(view: View, reason: str) -> Reply:
    """End what runs and go on with the next candidate."""
    number = untried(view)[0]
    plan = f"give this candidate up and try {view.need_goal().candidates[number].title}"
    args = {"number": number, "reason": reason}
    choose = ToolCall(tool=UseCandidate().name, args=args, why=plan)
    return Reply(f"{_sentence(reason)} {_sentence(plan)}", (*_stops(view), choose))


def _give_up(view: View, now: Frontier, best: Hypothesis) -> Reply:
    args = {"cause": best.cause, "evidence": list(best.evidence), "advice": best.advice}
    if view.rejected and check_of(view, now.check).of_candidate:
        earlier = [
            f"{view.need_goal().candidates[number].title}: {reason}"
            for number, reason in view.rejected.items()
        ]
        args["cause"] = f"{best.cause}. Given up before: {'; '.join(earlier)}"
    text = f"{_sentence(best.cause)} Nothing here may mend that."
    return Reply(text, (ToolCall(tool=GiveUp().name, args=args),))


def _goes_round(view: View, call: ToolCall) -> bool:
    """Whether it was answered as often as it makes sense, with nothing changed since."""
    if view.facts.find(call.tool, call.target, call.args) is None:
        return False
    same = (record for record in view.calls.values() if record.call.same_as(call))
    return sum(record.status is CallStatus.OK for record in same) >= SAME_LOOKS


def _undecided(now: Frontier) -> Reply:
    words = now.standing.verdict.text if now.standing else "nothing more is known"
    args = {
        "cause": f"it cannot be told whether {CHECKS[now.check]}: {words}",
        "evidence": list(now.standing.evidence) if now.standing else [],
        "advice": f"See all of {now.call.tool if now.call else 'it'} with `bringup show`.",
    }
    return Reply(_sentence(str(args["cause"])), (ToolCall(tool=GiveUp().name, args=args),))


def _cannot_tell(now: Frontier, failed: CallRecord) -> Reply:
    cause = f"it cannot be told whether {CHECKS[now.check]}: {failed.message}"
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
    return (clean if _NAME_FIRST.match(clean) else clean[:1].upper() + clean[1:]) + "."


_NAME_FIRST = re.compile(r"\S*[^a-zA-Z'\s]\S*|\S+ [(<>=~]?=?\d|\S+ \(image")
"""A name at the start, such as that of a package or a container, is written as it is."""


def options_left_out(view: View) -> list[str]:
    """Return what the goal asks of the server and the installed release does not know."""
    site = site_of(view)
    if site.candidate.engine == "custom":
        return []
    if site.is_image:
        answers = answers_of(view, site)
        seen = answers.options if answers else None
    else:
        seen, _ = view.facts.latest(ServerOptions, fresh=False)
    return unknown_options(site, seen) if seen else []


def untried(view: View) -> list[int]:
    """Return the numbers of candidates that were not tried yet, in the goal's order."""
    tried = {view.candidate, *view.rejected}
    return [n for n in range(len(view.need_goal().candidates)) if n not in tried]
