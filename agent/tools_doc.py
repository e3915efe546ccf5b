"""Writes the reference part of ``docs/tools.md`` from the tools' own declarations.

``python -m agent.tools_doc docs/tools.md`` brings the page up to date.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent.control import CONTROLS, Said
from tools.base import Tool, Watch
from tools.registry import TOOLS

MARK = "<!-- Below this line: written by `python -m agent.tools_doc docs/tools.md` -->"
_BOUNDS = {
    "ge": "≥ {}",
    "gt": "> {}",
    "le": "≤ {}",
    "lt": "< {}",
    "min_length": "length ≥ {}",
    "max_length": "length ≤ {}",
}


def reference() -> str:
    """Return the reference: every tool and control tool, with arguments and observation."""
    parts = ["## Tools", *(f"{_tool(tool)}\n\n{_observation(tool)}" for tool in TOOLS)]
    parts += ["## Control tools", "All of them answer in the same form.", _fields(Said)]
    parts += map(_tool, CONTROLS.values())
    return "\n\n".join(parts) + "\n"


def page(text: str) -> str:
    """Return a page with the part below the mark brought up to date."""
    return f"{text.partition(MARK)[0]}{MARK}\n\n{reference()}"


def _tool(tool: Tool[Any, Any]) -> str:
    said = meanings(tool.args_type)
    rows = [
        f"| `{name}` | {_type(info)} | {default_of(info)} | {said[name]} |"
        for name, info in tool.args_type.model_fields.items()
    ]
    table = ["| argument | type | default | meaning |", "| --- | --- | --- | --- |", *rows]
    parts = [f"### `{tool.name}`", _plain(tool.summary), _declared(tool), "\n".join(table)]
    return "\n\n".join(parts)


def _observation(tool: Tool[Any, Any]) -> str:
    kind = tool.observation_type
    parts = [f"Observes: {_about(kind)}", _fields(kind)]
    for part in _parts(kind):
        parts += [f"Each `{part.__name__}`: {_about(part)}", _fields(part)]
    return "\n\n".join(parts)


def _fields(kind: type[BaseModel]) -> str:
    said = meanings(kind)
    rows = [
        f"| `{name}` | {_type(info)} | {said[name]} |" for name, info in kind.model_fields.items()
    ]
    return "\n".join(["| field | type | meaning |", "| --- | --- | --- |", *rows])


def _declared(tool: Tool[Any, Any]) -> str:
    """Say what the class declares: risk, needs, what it establishes, and whether it always asks."""
    risk = f"Risk `{tool.risk.name}`"
    if type(tool).risk_of is not Tool.risk_of:
        risk += f" ({_plain(type(tool).risk_of.__doc__ or '').rstrip('.')})"
    words = [risk]
    words += [f"needs {_names(tool.needs)}"] if tool.needs else []
    words += [f"establishes {_names(tool.establishes)}"] if tool.establishes else []
    words += ["always asks"] if tool.always_asks else []
    words += ["samples until it is decided"] if isinstance(tool, Watch) else []
    return " · ".join(words) + "."


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def meanings(kind: type[BaseModel]) -> dict[str, str]:
    """Return what each field means: its description, else the docstring that stands below it."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            said |= dict(_docstrings(base))
    fields = kind.model_fields
    return {name: _cell(info.description or said.get(name, "")) for name, info in fields.items()}


def default_of(info: FieldInfo) -> str:
    """Return a field's default as JSON, or ``needed``, or ``none``."""
    if info.is_required():
        return "needed"
    value = info.get_default(call_default_factory=True, validated_data={})
    return "none" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _docstrings(kind: type[BaseModel]) -> Iterator[tuple[str, str]]:
    (tree,) = ast.parse(inspect.getsource(kind)).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for node, after in pairwise(body):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            yield node.target.id, str(after.value.value)


def _type(info: FieldInfo) -> str:
    bounds = [
        words.format(getattr(item, name))
        for item in info.metadata
        for name, words in _BOUNDS.items()
        if getattr(item, name, None) is not None
    ]
    return _cell(", ".join([f"`{type_text(info.annotation)}`", *bounds]))


def type_text(kind: Any) -> str:
    """Return a type as people read it: ``list[str]``, ``int or None``, ``"out" or "err"``."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_text(inner[0])
    if origin is Literal:
        return " or ".join(json.dumps(item) for item in inner)
    if origin in (Union, UnionType):
        return " or ".join(map(type_text, inner))
    if origin in (list, tuple):
        return f"list[{type_text(inner[0])}]"
    if origin is dict:
        return f"dict[{type_text(inner[0])}, {type_text(inner[1])}]"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(json.dumps(item.value) for item in kind)
    return "None" if kind is NoneType else str(getattr(kind, "__name__", kind))


def _parts(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models that stand inside an observation."""
    for info in kind.model_fields.values():
        for part in _inside(info.annotation):
            yield part
            yield from _parts(part)


def _inside(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, BaseModel):
        yield kind
    for inner in get_args(kind):
        yield from _inside(inner)


def _about(kind: type) -> str:
    return _plain(inspect.cleandoc(kind.__doc__ or ""))


def _plain(text: str) -> str:
    return inspect.cleandoc(text).replace("``", "`")


def _cell(text: str) -> str:
    return " ".join(_plain(text).split()).replace("|", "\\|")


def main() -> None:
    """Bring the page named on the command line up to date."""
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
