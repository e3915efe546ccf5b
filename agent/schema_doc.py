"""Writes the reference part of ``docs/transcript.md`` from the events' own docstrings.

``python -m agent.schema_doc docs/transcript.md`` brings the page up to date.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import get_args

from agent.event import Event
from agent.events import AnyEvent
from agent.values import CallStatus, FixVerdict, Outcome, Purpose, ToolCall, Usage
from tools.base import Risk, Subject
from tools.command import Ending, Result

MARK = "<!-- Below this line: written by `python -m agent.schema_doc docs/transcript.md` -->"
EVENTS: tuple[type[Event], ...] = get_args(get_args(AnyEvent)[0])
"""All event types, in the order of the union."""
_VALUES: tuple[type, ...] = (ToolCall, Purpose, Usage, Subject, Result)
_CHOICES: tuple[type[Enum], ...] = (Risk, CallStatus, FixVerdict, Outcome, Ending)


def reference() -> str:
    """Return the reference: every event type, value and choice, with every field."""
    parts = ["## Every event", _table(Event)]
    parts += [_section(kind, _type_name(kind)) for kind in EVENTS]
    parts += ["## Values inside events", *(_section(kind, kind.__name__) for kind in _VALUES)]
    parts += ["## Choices", *(_choice(kind) for kind in _CHOICES)]
    return "\n\n".join(parts) + "\n"


def page(text: str) -> str:
    """Return a page with the part below the mark brought up to date."""
    return f"{text.partition(MARK)[0]}{MARK}\n\n{reference()}"


def _section(kind: type, name: str) -> str:
    return f"### `{name}`\n\n{_about(kind)}\n\n{_table(kind)}"


def _type_name(kind: type[Event]) -> str:
    return str(kind.model_fields["type"].default)


def _table(kind: type) -> str:
    rows = [
        f"| `{name}` | `{type_}` | {default} | {doc} |"
        for name, type_, default, doc in _fields(kind)
    ]
    if not rows:
        return "No fields of its own."
    return "\n".join(["| field | type | default | meaning |", "| --- | --- | --- | --- |", *rows])


def _fields(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, default and meaning of each field that the class itself declares."""
    body = _body(kind)
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if node.target.id in {"type", "model_config"}:
            continue
        type_ = ast.unparse(node.annotation).replace("|", "\\|").replace("'", '"')
        if type_.startswith("ClassVar"):
            continue  # of the class, not of what is written
        yield node.target.id, type_, _default(node.value), _doc(after)


def _choice(kind: type[Enum]) -> str:
    body = _body(kind)
    rows = [f"### `{kind.__name__}`", "", _about(kind), ""]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign):
            doc = _doc(after)
            rows.append(f"- `{ast.literal_eval(node.value)}`{': ' if doc else ''}{doc}")
    return "\n".join(rows)


def _default(value: ast.expr | None) -> str:
    if value is None:
        return "needed"
    text = ast.unparse(value)
    if isinstance(value, ast.Call):
        named = {word.arg: ast.unparse(word.value) for word in value.keywords}
        text = named.get("default_factory", text)
        text = {"dict": "{}", "list": "[]"}.get(text, text)
    return f"`{text}`".replace("''", '""').replace("'", '"')


def _doc(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split()).replace("|", "\\|").replace("``", "`")
    return ""


def _about(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").replace("``", "`")


def _body(kind: type) -> list[ast.stmt]:
    (tree,) = ast.parse(inspect.getsource(kind)).body
    return tree.body if isinstance(tree, ast.ClassDef) else []


def main() -> None:
    """Bring the page named on the command line up to date."""
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
