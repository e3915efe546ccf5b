"""A tool call as a model meant it, however it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent.brains.arguments import capped, read_arguments
from agent.brains.fitting import fit
from agent.brains.names import Toolbox, printable


@dataclass(frozen=True, slots=True)
class SaidCall:
    """One tool call."""

    name: str
    """The tool that is meant; a name that no tool has is kept, printable and not too long."""
    args: dict[str, Any] = field(default_factory=dict)
    """A JSON object that can be stored and sent back as it is."""
    problem: str = ""
    """Why it cannot be run, in words that tell the model what to do."""


def said_call(
    name: str, raw: Any, toolbox: Toolbox, cut_off: bool
) -> tuple[SaidCall, tuple[str, ...]]:
    """Read a call.

    Args:
        name: The name as it was written.
        raw: The arguments as they came: text, an object, or something wrong.
        toolbox: The tools that were offered.
        cut_off: Whether the reply ended at its length limit.

    Returns:
        The call, and what had to be mended.
    """
    known = toolbox.known(name) or printable(name)
    args, problem, notes = read_arguments(raw, cut_off)
    if not known and not problem:
        problem = "the call has no name; name the tool that is to be used"
    if problem or not args:
        return SaidCall(known, args, problem), notes
    args, changes = fit(args, toolbox.schema(known))
    if changes:
        args, problem, _ = capped(args)
        notes += (f"arguments of {known} fitted: {', '.join(changes)}"[:300],)
    return SaidCall(known, args, problem), notes
