"""Every tool reads real output: one data file a case, no code a case.

``tests/parsers/<tool>/<case>.json`` holds ``args``, ``marker``, ``result`` as it was recorded (or,
for a watch, ``results``), and what has to come out: ``observation``, or ``error`` as "Type: text".
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tools
from tools.base import CallContext, Tool, Watch
from tools.command import Ending, Result
from tools.errors import ToolsError

CASES = Path(__file__).parent / "parsers"
OURS = {
    "config_probe",
    "import_probe",
    "install_pip",
    "pip_check",
    "pip_install",
    "pip_list",
    "pip_resolve",
    "pip_show",
    "python_environment",
}


def subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def declared_tools() -> dict[str, Tool[Any, Any]]:
    """All tools of ``tools/*.py``: classes that know the types of their arguments and answers."""
    for module in pkgutil.iter_modules(tools.__path__):
        if not module.ispkg:
            importlib.import_module(f"tools.{module.name}")
    classes = [cls for cls in subclasses(Tool) if cls.__module__.startswith("tools.")]
    found = [cls() for cls in classes if hasattr(cls, "args_type")]
    return {tool.name: tool for tool in found}


TOOLS = declared_tools()


def registered() -> set[str]:
    """The names that must have cases: all that a brain can call, once there is a registry."""
    if importlib.util.find_spec("tools.registry") is None:
        return OURS
    known = importlib.import_module("tools.registry").TOOLS
    return {(tool if isinstance(tool, Tool) else tool()).name for tool in known}


def result_of(data: dict[str, Any]) -> Result:
    return Result(**{**data, "ending": Ending(data["ending"])})


def outcome(tool: Tool[Any, Any], case: dict[str, Any]) -> dict[str, Any]:
    """What the tool makes of a case, in the form in which the case tells it."""
    args = tool.args_type.model_validate(case["args"])
    call = CallContext("run-1", "call-1", case.get("marker", "marker"), "/srv/bringup")
    try:
        if isinstance(tool, Watch) and "results" in case:
            observation = tool.parse_all(args, call, [result_of(it) for it in case["results"]])
        else:
            observation = tool.parse(args, call, result_of(case["result"]))
    except ToolsError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    assert observation.headline().strip()
    return {"observation": observation.model_dump(mode="json")}


@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*/*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_case(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    expected = {key: case[key] for key in ("observation", "error") if key in case}
    assert len(expected) == 1, "a case says either `observation` or `error`"
    assert path.parent.name in TOOLS, "no tool has this folder's name"
    assert outcome(TOOLS[path.parent.name], case) == expected


def test_every_tool_has_a_case() -> None:
    assert registered() - {path.parent.name for path in CASES.glob("*/*.json")} == set()


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_says_what_it_does(name: str) -> None:
    assert len(TOOLS[name].summary.splitlines()[0]) > 15
