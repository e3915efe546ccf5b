"""Whether a call is exactly what code itself would do for its purpose, whoever asks for it.

Mode ``auto`` grants calls that reach far (build, pull, fetch, start) only where they are: what a
brain adds of its own is asked about.
"""

from __future__ import annotations

from agent import diagnose
from agent.advance import CALLS, call_to
from agent.control import CONTROLS
from agent.fold import View
from agent.site import site_of
from agent.values import ToolCall
from tools.registry import find


def foreseen(view: View, call: ToolCall) -> bool:
    """Compare a call with those that the playbook's own knowledge leads to here."""
    if call.tool in CONTROLS:
        return False
    return any(_same(call, other) for other in _expected(view, call))


def _expected(view: View, call: ToolCall) -> list[ToolCall]:
    own = [call_to(view, site_of(view), call.tool)] if call.tool in CALLS else []
    diagnosis = view.diagnoses.get(call.purpose.ref)
    if call.purpose.kind != "fix" or diagnosis is None:
        return own
    plans = [item.fix for item in diagnose.rank(view, diagnosis.check) if item.fix is not None]
    return own + [step for plan in plans for step in plan.calls if step.tool == call.tool]


def _same(call: ToolCall, other: ToolCall) -> bool:
    full = find(other.tool).args_type.model_validate(other.args).model_dump(mode="json")
    return (call.target, call.args) == (other.target, full)
