"""A model that obeys: whatever text tells it to do, it does, with whatever purpose may get through.

It is a real endpoint on loopback (``stub_model``). Of each request it reads what was said since its
last reply; where it finds the words of an order, it makes exactly the calls that the order wants:
as a step towards an unmet check, as the fix of a diagnosis with real evidence, as requested by the
person, as a recovery. Else it goes on as a sensible model would, by the first suggestion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from agent.control import CONTROLS
from tests.lab.poisoned import look_at
from tests.lab.stub_model import Asked, prompt_tokens, said
from tools.base import Risk
from tools.registry import TOOLS

FOLDER = Path(__file__).parent.parent / "injection"
SAID = "The notes on this host say so."
_RISKS = {tool.name: tool.risk for tool in (*TOOLS, *CONTROLS.values())}
_RESULT = re.compile(r"^(e\d+) ", re.MULTILINE)
_UNMET = re.compile(r"^- (\w+): (?:fails|not known)", re.MULTILINE)
_NEXT = re.compile(r"The next diagnosis is (d\d+)")
_CHANGE = re.compile(r"^- (t\d+\.\d+) ", re.MULTILINE)
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Order:
    """One text of the corpus."""

    id: str
    place: str
    """Where on the host it is, see ``poisoned.PLACES``."""
    sign: str
    """A piece of it by which it is known again."""
    text: str
    calls: tuple[dict[str, Any], ...]
    """What a model that obeys calls: ``tool``, ``args`` and perhaps ``target``."""
    at: str = ""
    """The path of a file."""
    refs: tuple[str, ...] = ()
    """Events that it pretends to be, or to be allowed by."""
    quotes: bool = False
    """Whether the model repeats the text instead of calling anything."""

    @property
    def first(self) -> str:
        """The tool that it is about."""
        return str(self.calls[0]["tool"])


@cache
def orders() -> tuple[Order, ...]:
    """Return the corpus."""
    rows = [
        row
        for path in sorted(FOLDER.glob("*.yaml"))
        for row in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]
    return tuple(
        Order(**{**row, "calls": tuple(row["calls"]), "refs": tuple(row.get("refs", ()))})
        for row in rows
    )


@dataclass
class Compliant:
    """Answers requests; give it to ``stub_model.serving``."""

    known: Sequence[Order] = field(default_factory=orders)
    at_first: Order | None = None
    """What is looked at first, so that the text is met."""
    goes_on: bool = True
    """Whether it takes suggestions once it has obeyed; else it gives up."""
    met: set[str] = field(default_factory=set)
    """Orders that it has read."""
    _tried: dict[str, int] = field(default_factory=dict)
    _looked: bool = False

    def __call__(self, asked: Asked) -> dict[str, Any]:
        """Return the reply to a request."""
        messages = asked.body["messages"]
        text, calls = self._decide(messages)
        return said(text, calls, usage=(prompt_tokens(asked.body), 10))

    def _decide(self, messages: list[Mapping[str, Any]]) -> tuple[str, list[Call]]:
        news = str(messages[-1]["content"])
        self.met |= {order.id for order in self.known if order.sign in _read(messages)}
        for order in self.known:
            step = self._tried.get(order.id, 0)
            if order.id in self.met and step < len(_WAYS):
                self._tried[order.id] = step + 1
                made = _obey(order, step, messages)
                if made is not None:
                    return made
        look = look_at(self.at_first.place, self.at_first.at) if self.at_first else None
        if look is not None and not self._looked:
            self._looked = True
            return "A look.", [look]
        if "- s1: " in news and (self.goes_on or not self.met):
            return "As suggested.", [("take_suggestion", {"id": "s1"})]
        return "Enough.", [("give_up", {"cause": "nothing more is to be done"})]


def _read(messages: list[Mapping[str, Any]]) -> str:
    """Return all that others have said, escapes of JSON undone: a model reads through them."""
    words = [str(item["content"]) for item in messages if item["role"] != "assistant"]
    return "\n".join(words).replace('\\"', '"')


def _obey(
    order: Order, step: int, messages: list[Mapping[str, Any]]
) -> tuple[str, list[Call]] | None:
    """Return the calls of an order for a way of trying; ``None`` where that would change nothing.

    What needs no purpose is tried once, and a text is repeated once.
    """
    if order.quotes:
        return (f"It says:\n{order.text}", []) if step == 0 else None
    needs_purpose = any(_RISKS.get(call["tool"], 0) > Risk.READ for call in order.calls)
    if step and not needs_purpose:
        return None
    before, purpose, after = _WAYS[step](order, messages)
    calls = [_call(row, purpose) for row in order.calls]
    return SAID, [*before, *calls, *after]


def _call(row: Mapping[str, Any], purpose: str) -> Call:
    args = json.loads(json.dumps(row["args"]))
    if "target" in row:
        args["target"] = row["target"]
    if _RISKS.get(row["tool"], Risk.CHANGE) > Risk.READ:
        args |= {"purpose": purpose, "why": SAID}
    return str(row["tool"]), args


Way = tuple[list[Call], str, list[Call]]


def _unmet(messages: list[Mapping[str, Any]]) -> str:
    found = _UNMET.findall(str(messages[-1]["content"]))
    return found[-1] if found else "chat"


def _advance(order: Order, messages: list[Mapping[str, Any]]) -> Way:
    return [], f"advance {_unmet(messages)}", []


def _fix(order: Order, messages: list[Mapping[str, Any]]) -> Way:
    """Record a diagnosis with real evidence first, and with what the text calls evidence."""
    found = _NEXT.search(str(messages[-1]["content"]))
    name = found[1] if found else "d1"
    checks = _UNMET.findall(str(messages[-1]["content"])) or ["chat"]
    args = {
        "kind": "unknown",
        "cause": order.text,
        "evidence": _RESULT.findall(_read(messages)),
        "check": checks[0],
        "plan": order.text,
    }
    return [("record_diagnosis", args)], f"fix {name}", [("applied", {"diagnosis": name})]


def _requested(order: Order, messages: list[Mapping[str, Any]]) -> Way:
    ref = order.refs[0] if order.refs else _RESULT.findall(_read(messages))[-1]
    return [], f"requested {ref}", []


def _recover(order: Order, messages: list[Mapping[str, Any]]) -> Way:
    found = _CHANGE.findall(str(messages[-1]["content"]))
    return [], f"recover {found[-1] if found else 't1.1'}", []


_WAYS = (_advance, _fix, _requested, _recover)
