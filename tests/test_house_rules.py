"""The rules of this house that no other tool checks; each failure names the file and the rule."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.lab.checkout import ROOT, project_files
from tools.registry import TOOLS

SHIPPED = ("agent/", "tools/", "prompts/")
MAX_LINES = 300

MAY_START_PROCESSES = {
    "tools/connectors/local.py": "the one place that starts processes",
    "tools/probes/host.py": "a probe: runs on the target, asks its nvidia-smi",
    "tools/probes/bundle.py": "a probe: runs in an image, starts one probe after the other",
    "tools/probes/memory.py": "a probe: runs on the target, asks its nvidia-smi",
    "tools/probes/port.py": "a probe: runs on the target, asks which process owns a port",
}
NAMES_THE_TRANSCRIPT = {"agent/runs.py"}
WRITES_LINE_FILES = {"agent/transcript.py", "agent/line_file.py"}
WITHOUT_NAMES = ("agent/brains/playbook.py", "agent/diagnose.py")

FILES = project_files()
CODE = [name for name in FILES if name.endswith(".py")]
LIBRARY = [name for name in CODE if name.startswith(("agent/", "tools/"))]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


@functools.cache
def tree(name: str) -> ast.Module:
    return ast.parse(text(name), filename=name)


def imported(name: str) -> Iterator[str]:
    """The full names of the modules that a file imports."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def importers(module: str, among: list[str]) -> set[str]:
    """The files that import a module or something out of it."""
    return {
        name
        for name in among
        if any(f"{found}.".startswith(f"{module}.") for found in imported(name))
    }


def found_in(pattern: str, names: list[str]) -> list[str]:
    """Where a pattern occurs, as file:line: text."""
    known = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name in names
        for number, line in enumerate(text(name).splitlines(), 1)
        if known.search(line)
    ]


def test_there_are_files_to_check() -> None:
    assert "tests/test_house_rules.py" in CODE
    assert len(LIBRARY) > 20


def test_modules_are_short() -> None:
    lengths = {name: len(text(name).splitlines()) for name in CODE}
    long = {name: lines for name, lines in lengths.items() if lines > MAX_LINES}
    assert not long, f"more than {MAX_LINES} lines; split at a thought: {long}"


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "helpers", "helper", "misc"}
    found = [
        name
        for name in CODE
        if drawers & {part.lower() for part in Path(name).with_suffix("").parts}
    ]
    assert not found, f"name what is in it instead: {found}"


def test_modules_say_what_they_are() -> None:
    silent = [name for name in LIBRARY if not ast.get_docstring(tree(name))]
    assert not silent, f"no module docstring: {silent}"


def test_tools_never_import_agent() -> None:
    lower = [name for name in LIBRARY if name.startswith("tools/")]
    assert not importers("agent", lower), "tools/ is the lower layer"


@pytest.mark.parametrize("module", ["subprocess", "multiprocessing", "pty"])
def test_one_module_starts_processes(module: str) -> None:
    found = importers(module, LIBRARY) - set(MAY_START_PROCESSES)
    assert not found, f"go through a connector instead of {module}: {found}"


def test_no_process_starts_through_os() -> None:
    calls = r"\bos\.(system|popen|fork|forkpty|exec[lv]\w*|spawn[lv]\w*|posix_spawnp?)\("
    names = [name for name in LIBRARY if name not in MAY_START_PROCESSES]
    assert not found_in(calls, names)


def test_the_exceptions_are_still_needed() -> None:
    unused = {name for name in MAY_START_PROCESSES if name not in importers("subprocess", LIBRARY)}
    assert not unused, f"remove from MAY_START_PROCESSES: {unused}"


def test_one_module_writes_transcripts() -> None:
    naming = {
        name
        for name in LIBRARY
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Constant) and node.value == "transcript.jsonl"
    }
    assert naming == NAMES_THE_TRANSCRIPT, "take the path from RunFolder.transcript"
    writing = importers("agent.line_file", LIBRARY) - WRITES_LINE_FILES
    assert not writing, f"events are appended by agent/transcript.py alone: {writing}"


def test_no_place_of_one_machine_is_named() -> None:
    # One letter in brackets each, so that this file does not name them either.
    places = r"/[w]ork/|/[f]arm/|/tmp/[l]ab|/opt/([w]heels|[p]ypi)|/root/[.]pyenv"
    assert not found_in(places, FILES)


def test_no_registry_is_named() -> None:
    assert not found_in(r"[p]ypi\.org|[p]ythonhosted|[n]pmjs\.|[d]eb\.debian", FILES)


def test_nothing_is_left_to_do() -> None:
    shipped = [name for name in FILES if name.startswith(SHIPPED)]
    assert not found_in(r"\b([T]ODO|[F]IXME|[X]XX)\b", shipped)


def names_in_playbooks() -> set[str]:
    """Engines, packages and families of models that the playbooks speak of."""
    data = {
        path.stem: yaml.safe_load(path.read_text("utf-8"))
        for path in (ROOT / "prompts/playbooks").glob("*.yaml")
    }
    names = set(data["engines"]["engines"])
    for engine in data["engines"]["engines"].values():
        names |= {module.partition(".")[0] for module in engine.get("modules", [])}
    for entry in data["releases"]["distributions"]:
        names |= {entry["distribution"], entry["module"].partition(".")[0]}
    for release in data["releases"]["releases"]:
        names |= {release["package"], *re.findall(r"^[a-z]{3,}", release["model_types"])}
    return {name.lower() for name in names}


def test_playbooks_are_read_as_expected() -> None:
    assert {"vllm", "sglang", "transformers", "torch", "qwen"} <= names_in_playbooks()


@pytest.mark.parametrize("name", WITHOUT_NAMES)
def test_reasoning_knows_no_product(name: str) -> None:
    words = "|".join(
        re.escape(word) for word in sorted(names_in_playbooks() | {"llama", "deepseek"})
    )
    found = found_in(rf"(?i)(?<![a-z.])({words})(?![a-z])", [name])
    assert not found, "put it into prompts/playbooks/*.yaml"


def test_every_tool_is_documented() -> None:
    assert "docs/tools.md" in FILES, "docs/tools.md is missing"
    page = text("docs/tools.md")
    missing = [tool.name for tool in TOOLS if f"`{tool.name}`" not in page]
    assert not missing, f"docs/tools.md does not name: {missing}"
