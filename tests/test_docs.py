"""The docs say what the code says: pages that are written from it, and tables that are checked."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pydantic import BaseModel

from agent import diagnose, knowledge, modules_doc, tools_doc
from agent.checks import CHECKS
from agent.cli import VERBS
from agent.control import CONTROLS
from agent.goal import CHECK_NAMES, Goal, parse_goal
from agent.goal_parts import Allow, Candidate, Host, Limits
from agent.inventory_parts import Entry, Written
from agent.report import EXIT_CODES
from agent.settings import PREFIX, Settings
from tests.lab.checkout import ROOT, project_files
from tools.registry import TOOLS

PAGES = [name for name in project_files() if name.endswith(".md")]
WRITTEN = {"docs/tools.md": tools_doc, "docs/architecture.md": modules_doc}
MARK = "<!-- Below this line: written by"
MAX_LINES, MAX_DECISION_LINES = 200, 25

KEYS: list[tuple[str, str, type[BaseModel]]] = [
    ("docs/goal.md", "Keys", Goal),
    ("docs/goal.md", "One of `hosts`", Host),
    ("docs/goal.md", "One of `candidates`", Candidate),
    ("docs/goal.md", "`allow`", Allow),
    ("docs/goal.md", "`limits`", Limits),
    ("docs/hosts.md", "The file", Written),
    ("docs/hosts.md", "One of `hosts`", Entry),
    ("docs/settings.md", "Settings", Settings),
    ("docs/playbooks.md", "Add a signature", knowledge.Signature),
    ("docs/playbooks.md", "Add an engine", knowledge.Engine),
    ("docs/playbooks.md", "Add a release", knowledge.Release),
    ("docs/playbooks.md", "Add a release", knowledge.Distribution),
]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(name: str, title: str) -> str:
    """What stands under a heading, up to the next one."""
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^## |\Z)", text(name), re.M | re.S)
    assert found is not None, f"{name} has no section {title}"
    return found[1]


def tables(page: str) -> list[list[list[str]]]:
    """The rows of each table, without its head; a row is a list of cells."""
    blocks = re.findall(r"(?:^\|.*\n)+", page, re.M)
    return [[re.split(r" ?(?<!\\)\| ?", row)[1:-1] for row in it.splitlines()[2:]] for it in blocks]


def code(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text(name), re.S)


@pytest.mark.parametrize("name", WRITTEN)
def test_written_pages_are_up_to_date(name: str) -> None:
    module = WRITTEN[name]
    assert text(name) == module.page(text(name)), f"run: python -m {module.__name__} {name}"


@pytest.mark.parametrize("tool", [*TOOLS, *CONTROLS.values()], ids=lambda tool: tool.name)
def test_every_argument_and_field_is_on_the_page(tool: Any) -> None:
    part = section("docs/tools.md", "Control tools" if tool.name in CONTROLS else "Tools")
    own = re.search(rf"^### `{tool.name}`\n(.*?)(?=^### |\Z)", part, re.M | re.S)
    assert own is not None
    assert tool.summary.splitlines()[0].replace("``", "`") in own[1]
    arguments, *fields = [[row[0].strip("`") for row in table] for table in tables(own[1])]
    assert arguments == list(tool.args_type.model_fields)
    if tool.name not in CONTROLS:
        assert fields[0] == list(tool.observation_type.model_fields)


def default(kind: type[BaseModel], name: str) -> str:
    info = kind.model_fields[name]
    if info.is_required():
        return "needed"
    value = info.get_default(call_default_factory=True, validated_data={})
    parts = [value, *(value if isinstance(value, tuple) else ())]
    if any(isinstance(part, BaseModel) for part in parts):
        return "see below"
    return "none" if value is None else f"`{json.dumps(value)}`"


@pytest.mark.parametrize(("name", "title", "kind"), KEYS)
def test_every_key_is_described(name: str, title: str, kind: type[BaseModel]) -> None:
    wanted = {f"`{key}`": default(kind, key) for key in kind.model_fields}
    found = [
        {key: value for key, value, _ in table}
        for table in tables(section(name, title))
        if len(table[0]) == 3
    ]
    assert wanted in found


def test_every_setting_has_a_variable_and_every_mode_is_explained() -> None:
    page = text("docs/settings.md")
    assert PREFIX in page
    (modes,) = tables(section("docs/settings.md", "Modes"))
    assert [row[0].strip("`") for row in modes] == ["read-only", "supervised", "auto"]


def test_every_verb_and_option_is_described() -> None:
    found = {
        row[0].split()[1].strip("`"): row[1].replace("`", "").split()
        for table in tables(section("docs/settings.md", "Verbs"))
        for row in table
    }
    assert found == {verb: options(verb) for verb in VERBS}


def options(verb: str) -> list[str]:
    app = typer.Typer(add_completion=False)
    app.command(name=verb)(importlib.import_module(f"agent.cli.{verb}").run)
    names = [name for param in typer.main.get_command(app).params for name in param.opts]
    return [name for name in names if name.startswith("--") and name != "--help"]


def test_every_exit_code_is_described() -> None:
    (rows,) = tables(section("docs/settings.md", "Exit codes"))
    assert {int(code) for code, _ in rows} == {*EXIT_CODES.values(), 2}


def test_every_check_of_a_goal_is_described() -> None:
    (rows,) = tables(section("docs/goal.md", "Checks"))
    said = {name.strip("`"): words for name, words in rows}
    assert tuple(said) == CHECK_NAMES
    assert [n for n in CHECK_NAMES if not said[n].startswith(CHECKS[n])] == []


def test_every_kind_is_described() -> None:
    (rows,) = tables(section("docs/playbooks.md", "Kinds"))
    assert {row[0].strip("`") for row in rows} == set(diagnose.KINDS)


@pytest.mark.parametrize("source", code("docs/goal.md", "yaml"))
def test_examples_of_goals_can_be_used(source: str, tmp_path: Path) -> None:
    goal = parse_goal(yaml.safe_load(source), base=tmp_path, where="docs/goal.md")
    assert goal.all_checks


def test_the_shipped_goal_is_the_first_example() -> None:
    shipped = text("prompts/goals/serve.yaml")
    assert code("docs/goal.md", "yaml")[0] == shipped
    wanted = parse_goal(yaml.safe_load(shipped), base=Path("/srv"), where="serve.yaml")
    assert wanted.model == "/srv/model"
    assert wanted.allow.paths == (wanted.candidates[0].venv,)


@pytest.mark.parametrize("source", code("docs/playbooks.md", "yaml"))
def test_examples_of_playbooks_can_be_used(source: str) -> None:
    shown = knowledge.Knowledge.model_validate(yaml.safe_load(source))
    known = knowledge.load()
    assert shown.signatures or shown.releases or shown.engines
    assert [item for item in shown.signatures if item not in known.signatures] == []
    assert [item for item in shown.releases if item not in known.releases] == []


def test_examples_of_code_are_copied_from_the_code() -> None:
    page = text("CONTRIBUTING.md")
    found = re.findall(r"From\s`(\S+)`:\n\n((?:```python\n.*?```\n\n)+)", page, re.S)
    assert [name for name, _ in found] == ["tools/packages.py", "tests/test_starts.py"]
    for name, blocks in found:
        for block in re.findall(r"```python\n(.*?)```", blocks, re.S):
            assert block in text(name), f"CONTRIBUTING.md: copy it again from {name}"


def test_the_example_of_a_tool_is_short() -> None:
    (tool, *_) = re.findall(
        r"From `tools/\S+`:\n\n((?:```.*?```\n\n)+)", text("CONTRIBUTING.md"), re.S
    )
    assert len([line for line in tool.splitlines() if line and "```" not in line]) <= 25


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    targets = [it.partition("#")[0] for it in re.findall(r"\]\(([^)\s]+)\)", text(name))]
    here = [it for it in targets if it and "://" not in it]
    assert [it for it in here if not ((ROOT / name).parent / it).exists()] == []


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("docs/")])
def test_pages_are_short(name: str) -> None:
    limit = MAX_DECISION_LINES if name.startswith("docs/adr/") else MAX_LINES
    assert len(text(name).partition(MARK)[0].splitlines()) <= limit


def test_decisions_are_numbered_and_say_what_they_cost() -> None:
    names = sorted((ROOT / "docs/adr").glob("*.md"))
    assert [int(path.name[:4]) for path in names] == list(range(1, len(names) + 1))
    for path in names:
        number = int(path.name[:4])
        page = path.read_text(encoding="utf-8")
        assert page.startswith(f"# {number}. ")
        titles = re.findall(r"^## (.*)$", page, re.M)
        assert titles == ["Context", "Decision", "What it costs"], path.name
