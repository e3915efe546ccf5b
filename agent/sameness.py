"""What counts as the same call, and as the same end of it; so a circle can be told from progress.

Words that only explain a call do not make it another one, and numbers that differ each time (pids,
times, ports) do not make a failure another one. Of an observation its own class knows what of it
moves by itself with the clock, and what tells that something works.
"""

from __future__ import annotations

from typing import Any

from agent.control import CONTROLS
from agent.facts import key_of
from agent.records import CallRecord
from agent.values import CallStatus, ToolCall
from tools import registry
from tools.base import Observation, Tool
from tools.errors import UnknownTool
from tools.logs import steady


def call_key(call: ToolCall) -> str:
    """Return what is the same for calls that ask for the same."""
    remarks = _remarks(call.tool)
    args = {name: value for name, value in call.args.items() if name not in remarks}
    return f"{call.tool} {key_of(call.target, args)}"


def end_key(record: CallRecord) -> str:
    """Return what is the same for the same end of a call, other than well."""
    return f"{record.status} {steady(record.message)}"


def same(now: CallRecord, before: CallRecord) -> bool:
    """Whether a call and its result say nothing that an earlier one did not say."""
    if now.status is not before.status or now.call.tool != before.call.tool:
        return False
    if call_key(now.call) != call_key(before.call):
        return False
    if now.status is not CallStatus.OK:
        return end_key(now) == end_key(before)
    return _seen(now).unmoved(_seen(before))


def _seen(record: CallRecord) -> Observation:
    return _tool(record.call.tool).observation_type.model_validate(record.observation)


def _remarks(name: str) -> tuple[str, ...]:
    try:
        return _tool(name).args_type.remarks
    except UnknownTool:
        return ()  # a brain has made it up


def _tool(name: str) -> Tool[Any, Any]:
    return CONTROLS.get(name) or registry.find(name)
