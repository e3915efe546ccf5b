"""Tool declarations as a model reads them: short JSON schemas, made from the tools themselves.

What a model cannot use is left out (patterns, bounds, titles): the tool's own validation says no
with a reason. Everything above READ also takes ``purpose``; what runs on a target takes ``target``.
The names are free: a test says that no tool has an argument of these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic.fields import FieldInfo

from agent import diagnose
from agent.control import CONTROLS, KIND_SAYS
from agent.values import Purpose, ToolCall
from tools.base import Risk, Tool
from tools.registry import TOOLS

SUGGESTION = "take_suggestion"
"""The one tool that only a model has: it stands for the calls of a suggestion."""
TARGET, PURPOSE, WHY = "target", "purpose", "why"
KINDS: tuple[str, ...] = tuple(
    kind for kind in get_args(Purpose.model_fields["kind"].annotation) if kind != "look"
)
_OF_DOCKER = ("container", "docker", "image", "service")
"""Beginnings of the names of modules whose tools speak to a Docker engine."""
_BY_SUGGESTION = frozenset({"engine_probe"})
"""Tools whose arguments nobody could write by hand; suggestions call them."""
_LEFT_OUT = frozenset({"probe_limit_s", "stuck_after_s", "limit_s", "grace_s", "label", "pins_of"})
"""Arguments whose defaults serve; a call may still give them."""
_PURPOSE_SAYS = "fix d1, advance CHECK, recover t3.1 or requested e7"
_MOST_INNER = 4
"""An object with more fields is one that a suggestion has filled in."""
_MOST_WORDS = 90
_KEPT = ("type", "enum", "items")
_PLAIN = {
    "python",
    "timeout_s",
    "ignore_case",
    "context_lines",
    "max_matches",
    "max_tokens",
    "port",
    "command",
    "cwd",
    "prompt",
    "model_type",
    "architecture",
    "network",
    "limit_bytes",
    "text",
    "force",
    "stream",
}
"""Arguments whose names say enough: what ``python`` means is said once, with the goal."""


def schemas(names: Iterable[str] = (), *, kind: str = "") -> list[dict[str, Any]]:
    """Return all tools as OpenAI function tools, control tools last.

    Args:
        names: only these tools; control tools are always there. Empty: all.
        kind: ``venv``, ``image`` or ``host`` leaves out what is only for others; empty: all for
            places where a model runs.
    """
    chosen = frozenset(names)
    real = [
        tool
        for tool in TOOLS
        if (tool.name in chosen if chosen else tool.name not in _BY_SUGGESTION)
        and tool.runs_in in (("", kind) if kind else ("", "venv", "image"))
        and not (kind in ("venv", "host") and _is_of_docker(tool))
    ]
    rows = [_function(tool, on_target=True) for tool in real]
    rows += [_function(tool, on_target=False) for tool in CONTROLS.values()]
    _say_once(rows)
    return [*rows, _suggestion()]


def _say_once(rows: list[dict[str, Any]]) -> None:
    """Leave a description of an argument out where an earlier tool has said the same."""
    said: set[tuple[str, str]] = set()
    for row in rows:
        for name, schema in row["function"]["parameters"]["properties"].items():
            words = (name, schema.get("description", ""))
            if words in said:
                schema.pop("description", None)
            said.add(words)


def _is_of_docker(tool: Tool[Any, Any]) -> bool:
    """Whether it is of no use without containers; a suggestion may still call it."""
    return type(tool).__module__.removeprefix("tools.").startswith(_OF_DOCKER)


def _suggestion() -> dict[str, Any]:
    return _declared(
        SUGGESTION,
        "Make the calls of a suggestion, exactly as it says.",
        {"id": {"type": "string", "description": "Such as s1."}},
        ["id"],
    )


def _declared(
    name: str, says: str, properties: Mapping[str, Any], required: list[str]
) -> dict[str, Any]:
    parameters: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        parameters["required"] = required
    return {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": parameters},
    }


def _function(tool: Tool[Any, Any], *, on_target: bool) -> dict[str, Any]:
    fields = tool.args_type.model_fields
    whole = tool.args_type.model_json_schema()
    properties = {
        name: _property(whole["properties"][name], field, whole.get("$defs", {}))
        for name, field in fields.items()
        if name not in _LEFT_OUT and "const" not in whole["properties"][name]
    }
    required = [name for name, field in fields.items() if field.is_required()]
    if on_target:
        properties[TARGET] = {"type": "string"}
    if may_change(tool):
        properties[PURPOSE] = {"type": "string", "description": _PURPOSE_SAYS}
        required.append(PURPOSE)
    says = _first_sentence(tool.summary)
    return _declared(tool.name, says, properties, required)


def may_change(tool: Tool[Any, Any]) -> bool:
    """Whether a call of it can be more than a look, so that it names a purpose."""
    return tool.risk > Risk.READ


def _property(schema: Mapping[str, Any], field: FieldInfo, defs: Mapping[str, Any]) -> Any:
    short = _short(schema, defs)
    says = _first_sentence(field.description or "")
    if field.description == KIND_SAYS:
        return {"type": "string", "enum": list(diagnose.KINDS)}
    if says and schema.get("title", "").lower().replace(" ", "_") not in _PLAIN:
        short["description"] = says
    return short


def _short(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    """Keep type, choices and items; of alternatives the first that is not null."""
    if "$ref" in schema:
        schema = defs[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        some = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return _short(some[0], defs)
    kept: dict[str, Any] = {}
    for key in _KEPT:
        value = schema.get(key)
        if isinstance(value, Mapping):
            kept[key] = _short(value, defs)
        elif value is not None and value is not False:
            kept[key] = value
    if "properties" in schema and len(schema["properties"]) <= _MOST_INNER:
        kept["properties"] = {
            name: _short(part, defs) for name, part in schema["properties"].items()
        }
    return kept


def _first_sentence(text: str) -> str:
    line = " ".join(text.partition("\n\n")[0].split()).rstrip(".")
    return line if len(line) <= _MOST_WORDS else line[:_MOST_WORDS].rpartition(" ")[0] + " …"


def called(
    name: str, args: Mapping[str, Any], problem: str, target: str, why: str = ""
) -> ToolCall:
    """Turn what a model said into a call: purpose, reason and target are taken out of the rest.

    Args:
        name: the tool.
        args: as the model gave them.
        problem: why it could not be read; empty where it could.
        target: where it runs if the model does not say.
        why: the reply's own words, where the call brings none of its own (``why``).
    """
    rest = dict(args)
    tool = _BY_NAME.get(name)
    where = _word(rest.pop(TARGET, "")) or target
    why = _word(rest.pop(WHY, "")) or why
    purpose, wrong = read_purpose(rest.pop(PURPOSE, ""))
    if tool is not None and not may_change(tool):
        wrong = ""  # a look needs none
    return ToolCall(
        tool=name, args=rest, target=where, purpose=purpose, why=why, problem=problem or wrong
    )


_BY_NAME: dict[str, Tool[Any, Any]] = {tool.name: tool for tool in TOOLS} | dict(CONTROLS)
_PURPOSE = re.compile(rf"\s*({'|'.join(KINDS)})\b[\s:=(,]*([\w.-]*)", re.ASCII | re.IGNORECASE)


def read_purpose(said: Any) -> tuple[Purpose, str]:
    """Read ``fix d1``, ``advance process_up``, ``recover t3.1``, ``requested e7``.

    Returns:
        The purpose, and what is wrong with the words; a purpose that is not there is for the gate
        to refuse.
    """
    if isinstance(said, Mapping):
        said = f"{said.get('kind', '')} {said.get('ref', '')}"
    text = _word(said)
    if not text:
        return Purpose(), ""
    match = _PURPOSE.match(text)
    if match is None:
        known = ", ".join(f"`{kind} …`" for kind in KINDS)
        return Purpose(), f"purpose: {text[:80]!r} is none of {known}"
    kind, ref = match[1].lower(), match[2]
    data = {"kind": kind, "ref": ref, "postcondition": ref if kind == "advance" else ""}
    return Purpose.model_validate(data), ""


def _word(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def purpose_words(purpose: Purpose) -> str:
    """Write a purpose as a model reads and writes it; empty for a look."""
    return "" if purpose.kind == "look" else f"{purpose.kind} {purpose.ref}".strip()


def said_arguments(call: ToolCall, target: str) -> dict[str, Any]:
    """Return a call's arguments as a model would have written them."""
    args = dict(call.args)
    if call.target != target and call.tool not in CONTROLS:
        args[TARGET] = call.target
    words = purpose_words(call.purpose)
    if words:
        args[PURPOSE] = words
    return args
