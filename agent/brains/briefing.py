"""What a model is told of the goal, and at each turn of where the run stands; pure text.

Words that come from hosts or files are fenced here as in results. The list of executed changes and
of open fixes is always there, so that nothing that was done is forgotten when old results are
shortened.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from agent.asking import HintGiven
from agent.brains.base import Request
from agent.brains.render import Fence, headline, result, short
from agent.brains.schemas import said_arguments
from agent.brains.suggestions import Suggestion
from agent.brains.texts import template
from agent.check import Standing
from agent.checks import checks_of, standing
from agent.fold import View
from agent.records import CallRecord
from agent.site import Site, site_of
from agent.values import CallStatus, ToolCall

MOST_CHANGES = 40
"""So many changes are listed, the newest."""
MOST_REFUSED = 10
"""So many refusals by a person are listed, the newest."""
MOST_FACTS = 30
"""So many facts are listed once old results are shortened, the newest."""
_MOST_CALL = 1500
"""A suggested call of more characters is shown by its head; taking it needs no copying."""


def opening(view: View, fence: Fence) -> str:
    """Write the first message: the goal, its places and checks, and the survey's results."""
    goal = view.need_goal()  # as at the beginning, whatever was chosen since: it is told once
    first = goal.candidates[0]
    site = replace(site_of(view), candidate=first, port=goal.port, image=first.image)
    surveyed = [record for record in view.calls.values() if record.origin == "survey"]
    return template("first").substitute(
        goal=json.dumps(fence.clean(_asked_for(view)), ensure_ascii=False, indent=1),
        places="\n".join(_places(view, site)),
        checks=_rows(f"{check.name}: {check.says}" for check in checks_of(site).values()),
        survey="\n".join(result(record, fence) for record in surveyed if record.ended >= 0)
        or "nothing",
    )


def _asked_for(view: View) -> dict[str, object]:
    """Return the goal without what was left at its default: that tells a model nothing."""
    data: dict[str, object] = view.need_goal().model_dump(
        mode="json", exclude_defaults=True, exclude={"limits"}
    )
    data["checks"] = list(view.need_goal().all_checks)
    return data


def _places(view: View, site: Site) -> list[str]:
    rows = [
        f"- target `{site.target}`: {'over ssh' if site.remote else 'this machine'}; a Python for "
        f"probes that need no environment: `{site.host_python}`"
    ]
    if site.is_image:
        rows.append(
            "- inside a running container there: target "
            f"`{site.target}/CONTAINER`, for tools that read files or run programs"
        )
    goal = view.need_goal()
    for number, item in enumerate(goal.candidates):
        what = f"image `{item.image}`" if item.image else f"environment `{item.venv}`"
        python = "" if item.image else f", its Python: `{item.venv}/bin/python`"
        rows.append(f"- candidate {number}: {what}, engine {item.engine}{python}")
    if site.kind != "host":
        rows.append(f"- the server is to listen on {goal.host}, port {site.port}")
    rows.append(f"- who is asked: {_asker(view)}")
    return rows


def _asker(view: View) -> str:
    header = view.header
    if header is None:
        return "nobody"
    if header.mode == "read-only":
        return "nobody: the run is read-only, every change is refused"
    who = "a person at a terminal" if header.interactive else "nobody at a terminal; the run waits"
    granted = "; ".join(header.grants)
    if granted:
        return f"{who}; a change is shown there, unless it is a suggestion's own and: {granted}"
    return f"{who}; every change is shown there before it is made: just make the call"


def now(
    request: Request, suggestions: Sequence[Suggestion], fence: Fence, *, facts: bool = False
) -> str:
    """Write where the run stands.

    Args:
        request: the turn's request.
        suggestions: what is suggested at this turn.
        fence: the run's fence.
        facts: whether to list what is known, because old results are shortened.
    """
    view = request.view
    site = site_of(view)
    parts = [
        "" if site.kind == "host" else f"Candidate {view.candidate}, port {site.port}.",
        _section("Checks", view.stir.kept(f"checks {fence}", lambda: _checks(view, fence))),
        _section("Claimed, and the checks said", _claimed(view, fence)),
        _section("Open fixes: say `applied` when their calls are done", _open(view)),
        _section("Changes that were made", _changes(view, fence)),
        _section(
            "Refused: not to be asked again; words given with it are to be followed",
            _refused(view, fence),
        ),
        _section("Runs now, by this run", _running(view)),
        _section("Known", _facts(view, fence) if facts else []),
        f"The next diagnosis is d{len(view.diagnoses) + 1}.",
    ]
    return template("now").substitute(
        turn=view.turn,
        used=_used(view),
        standing="\n".join(filter(None, parts)),
        suggestions=_section("Suggestions", _suggested(suggestions, fence)),
    )


def _section(title: str, rows: Iterable[str]) -> str:
    text = _rows(rows)
    return f"{title}:\n{text}" if text else ""


def _rows(rows: Iterable[str]) -> str:
    return "\n".join(f"- {row}" for row in rows)


def _used(view: View) -> str:
    limits, usage = view.need_goal().limits, view.asked.usage
    words = [
        f"{view.turn} of {limits.steps} turns",
        f"{view.t / 60:.0f} of {limits.minutes:g} minutes",
    ]
    if usage.tokens:
        words.append(f"{usage.tokens // 1000}k of {limits.tokens // 1000}k tokens")
    if limits.usd:
        words.append(f"{usage.cost_usd:.2f} of {limits.usd:g} USD")
    return ", ".join(words) + " used"


def _checks(view: View, fence: Fence) -> list[str]:
    """Tell of the goal's checks each, of others only what stands in the way; the rest by name."""
    wanted, site = view.need_goal().all_checks, site_of(view)
    known = checks_of(site)
    rows: list[str] = []
    others: dict[str, list[str]] = {"hold": [], "are not known yet": []}
    for name in (*wanted, *(name for name in known if name not in wanted)):
        check, now = known[name], standing(view, known[name])
        if name not in wanted and now.verdict.passed is not False:
            others["hold" if now.verdict.passed else "are not known yet"].append(name)
        elif name in wanted or (now.verdict.passed is False and now.evidence):
            look = check.probe(view, site) if now.verdict.passed is None else None
            rows.append(f"{name}: {_verdict(now, look, fence)}")
    return rows + [f"others that {how}: {', '.join(some)}" for how, some in others.items() if some]


def _verdict(now: Standing, look: ToolCall | None, fence: Fence) -> str:
    verdict = now.verdict
    if verdict.passed:
        return f"holds{_cited(now.evidence)}"
    if verdict.passed is None:
        return f"not known yet; its look: {_call(look, fence, 300)}" if look else "not known yet"
    lines = [line for line in (verdict.failure or "").splitlines() if line.strip()]
    said = [verdict.text, *(lines if len(lines) == 1 else ())]
    words = ": ".join(filter(None, dict.fromkeys(said)))
    return f"fails{_cited(now.evidence)}" + (f" {fence.line(words)}" if words else "")


def _claimed(view: View, fence: Fence) -> list[str]:
    if view.claim is None or view.verified is not False:
        return []
    return [
        f"{item.name}: {'holds' if item.passed else 'fails'}{_cited(item.evidence)}"
        + ("" if item.passed else f" {fence.line(item.text)}")
        for item in view.checks.values()
    ]


def _cited(evidence: Sequence[str]) -> str:
    return f" ({', '.join(evidence)})" if evidence else ""


def _open(view: View) -> list[str]:
    return [
        f"{fix.opened.fix_id} of {fix.opened.diagnosis_id}: calls {', '.join(fix.calls) or 'none'}"
        for fix in view.open_fixes
    ]


def _changes(view: View, fence: Fence) -> list[str]:
    """List what was done to hosts, the verdict on it too: none of it is to be done again."""
    verdicts = {
        name: f"; {fix.opened.fix_id} {fix.closed.verdict.value}"
        for fix in view.fixes.values()
        if fix.closed is not None
        for name in fix.calls
    }
    done = [record for record in view.changes if record.ended >= 0]
    return [
        f"{record.call.id} {_call(record.call, fence, 160)}: "
        f"{record.status.value if record.status else '?'} (e{record.ended})"
        f"{verdicts.get(record.call.id, '')}"
        for record in done[-MOST_CHANGES:]
    ]


def _refused(view: View, fence: Fence) -> list[str]:
    return [
        f"{record.call.id} {_call(record.call, fence, 500)} (e{record.ended}): {record.message}"
        for record in view.refused[-MOST_REFUSED:]
        if record.approval
    ]


def _running(view: View) -> list[str]:
    jobs = [f"job {job} (call {record.call.id})" for job, record in view.may_run.items()]
    services = view.effects.services
    return jobs + [
        f"container {name} (call {services[name].call.id})" for name in view.effects.serving
    ]


def _facts(view: View, fence: Fence) -> list[str]:
    """List the newest results of looks in one line each, those that a change made stale marked."""
    looks = (
        record
        for record in reversed(view.calls.values())
        if record.status is CallStatus.OK and not record.had_effect and record.started >= 0
    )
    return [_fact(view, record, fence) for record in islice(looks, MOST_FACTS)][::-1]


def _fact(view: View, record: CallRecord, fence: Fence) -> str:
    target = record.call.target
    changed = max((view.facts.last_change(target, item) for item in record.touches), default=-1)
    stale = " (something has changed since)" if changed > record.ended else ""
    return f"{headline(record)}{stale} {fence.line(record.message)}"


def _suggested(suggestions: Sequence[Suggestion], fence: Fence) -> list[str]:
    rows: list[str] = []
    for item in suggestions:
        words = fence.line(item.text, 400)
        if not item.calls:
            rows.append(f"no known fix is left here; look further, ask or give up: {words}")
            continue
        rows.append(f"{item.id}: {words}")
        rows += [f"  {_call(call, fence, _MOST_CALL)}" for call in item.calls]
    return rows


def _call(call: ToolCall, fence: Fence, most: int) -> str:
    args = fence.clean(said_arguments(call, call.target))
    words = json.dumps(args, ensure_ascii=False, separators=(", ", ": "))
    said = fence.line(words, most) if args else ""
    return f"{call.tool} {said}".strip()


def between(
    records: Iterable[CallRecord],
    hints: Iterable[HintGiven],
    notes: Iterable[str],
    fence: Fence,
    *,
    brief: bool = False,
) -> str:
    """Write what came after a turn's own results: looks of the checks, the person's notes, hints.

    Args:
        records: looks that a check made.
        hints: what code has to say.
        notes: what the person said.
        fence: the run's fence.
        brief: looks in one line each.
    """
    write = short if brief else result
    rows = [f"Looked at by a check:\n{write(record, fence)}" for record in records]
    rows += [f"The person says: {note}" for note in notes]
    rows += [hint.text for hint in hints]
    return "\n\n".join(rows)
