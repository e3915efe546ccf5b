"""The checks: executable conditions of a goal, and of the steps towards it.

A check names the READ call that decides it and judges what that call observed. The same checks
serve three readers: the playbook plans with them, a fix is judged by them, and ``verify.py`` says
*ready* by them. A name means the same everywhere; what is asked depends on the kind of place.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.check import Check, Standing
from agent.facts import Known
from agent.fold import View
from agent.host_checks import HOST_CHECKS
from agent.image_checks import IMAGE_CHECKS
from agent.judge import Verdict
from agent.site import Site, site_of
from agent.values import ToolCall
from agent.venv_checks import VENV_CHECKS
from tools.registry import find

TABLES = {"host": HOST_CHECKS, "image": IMAGE_CHECKS, "venv": VENV_CHECKS}
"""The checks by the kind of place."""
CHECKS: dict[str, str] = {
    name: check.says for table in TABLES.values() for name, check in table.items()
}
"""What each check says, by name."""


def checks_of(site: Site) -> Mapping[str, Check]:
    """Return the checks of this kind of place, by name."""
    return TABLES[site.kind]


def check_of(view: View, name: str) -> Check:
    """Return the check of that name for where the run stands."""
    return checks_of(site_of(view))[name]


def standing(view: View, check: Check) -> Standing:
    """Say how a check stands by what is known and fresh; ``passed`` is ``None`` for not known."""
    site = site_of(view)
    call = check.probe(view, site)
    if call is None:
        return Standing(check.idle)
    known = view.facts.find(call.tool, call.target, call.args) or _alike(view, check, call)
    if known is not None:
        return Standing(check.verdict(view, known.observation, site), (known.event,))
    failed = view.failed_looks.of(call)
    if failed:
        evidence = (f"e{failed[-1].ended}",)
        if check.refusal_decides:
            return Standing(Verdict(False, "no answer", failed[-1].message), evidence)
        words = f"it cannot be told: {failed[-1].message}"
        return Standing(Verdict(None, words), evidence)
    return Standing(Verdict(None, f"not known yet whether {check.says}"))


def _alike(view: View, check: Check, call: ToolCall) -> Known | None:
    """Return the newest fresh answer to a call that asked the same, or more, in other words."""
    if not check.same_by:
        return None
    for row in reversed(view.facts.known(type(find(call.tool)))):
        if row.target != call.target or not view.facts.is_fresh(row):
            continue
        if all(row.args.get(name) == call.args.get(name) for name in check.same_by):
            return row
        if _asked_more(check, call, row):
            verdict = check.verdict(view, row.observation, site_of(view))
            return row if verdict.passed else None
    return None


def _asked_more(check: Check, call: ToolCall, row: Known) -> bool:
    """Whether all else is the same, and the list has more."""
    if not check.more_of:
        return False
    others = (name for name in check.same_by if name != check.more_of)
    wanted, had = (set(args.get(check.more_of) or ()) for args in (call.args, row.args))
    return wanted <= had and all(row.args.get(name) == call.args.get(name) for name in others)
