"""What was asked for: the model, where it is to run, and the checks that prove it.

Read from YAML; an unknown key is an error that names the nearest known key. Paths become absolute
here and nowhere else, relative to the goal file.
"""

from __future__ import annotations

import difflib
import posixpath
import reprlib
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from agent import knowledge
from agent.problems import Problem

DEFAULT_CHECKS: dict[str, tuple[str, ...]] = {
    "serve": ("config_parses", "process_up", "health", "chat"),
    "diagnose": ("config_parses",),
}


CHECK_NAMES = (
    "environment_usable",
    "model_readable",
    "config_parses",
    "imports",
    "port_free",
    "process_up",
    "health",
    "chat",
)
"""Checks that a goal may name; ``checks.py`` says what each does."""


class GoalError(Problem):
    """The goal cannot be used; the message says what, where and what to do."""


class Part(BaseModel):
    """What all parts of a goal share: frozen, and no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Host(Part):
    """A machine that the goal may use."""

    name: str = "local"
    address: str = "local"
    """``local``; ssh addresses come with the ssh connector."""
    python: str = "python3"
    """A Python ≥ 3.8 on the host, for probes that need no environment."""


class Candidate(Part):
    """One environment that might run the model."""

    venv: str = Field(min_length=1)
    """A virtual environment's folder on the host."""
    engine: str = "transformers"
    """A name in ``prompts/playbooks/engines.yaml``, or ``custom`` with ``serve``."""
    serve: tuple[str, ...] = ()
    """custom: the server's argument vector; ``{python}``, ``{model}``, ``{port}`` are filled in."""
    registry: tuple[str, ...] = ()
    """Modules that register the engine's own config classes, imported before a config is judged."""
    modules: tuple[str, ...] = ()
    """custom: modules that have to be importable before the server is started."""
    health: str = "/health"
    """custom: path that answers 200 once the server is up."""
    requirements: tuple[str, ...] = ()
    """What the environment should hold, such as ``torch==2.13.0``; bounds every fix."""
    keep: tuple[str, ...] = ("torch",)
    """Distributions that no fix may move."""


def _port_range(value: Any) -> str:
    words = str(value).split("-")
    numbers = [int(word) for word in words if word.isascii() and word.isdecimal()]
    if len(numbers) != len(words) or len(words) > 2 or not 1 <= numbers[0] <= numbers[-1] <= 65535:
        raise ValueError("a port, such as 8001, or a range, such as 8001-8010, is needed")
    return str(value)


PortRange = Annotated[str, BeforeValidator(_port_range)]


class Allow(Part):
    """What the person allows beforehand."""

    paths: tuple[str, ...] = ()
    """Folders in which changes are allowed."""
    ports: tuple[PortRange, ...] = ()
    """Ports that may be used when the asked one is held: ``8001`` or ``8001-8010``."""
    download_mb: float = 500.0
    """At 2000 or more, an install of an accelerator build (gigabytes) is not asked about."""


class Limits(Part):
    """What a run may use."""

    steps: int = Field(default=60, gt=0)
    minutes: float = Field(default=60.0, gt=0)


class Goal(Part):
    """A goal, complete and with absolute paths."""

    kind: Literal["serve", "train", "diagnose"] = "serve"
    model: str = Field(min_length=1)
    """A model directory, or a bare config.json."""
    hosts: tuple[Host, ...] = Field((Host(),), min_length=1)
    candidates: tuple[Candidate, ...] = Field(min_length=1)
    host: str = Field(default="127.0.0.1", pattern=r"^([A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f:.]+)$")
    """The address that the server listens on."""
    port: int = Field(8000, ge=1, le=65535)
    options: dict[str, bool | str | int | float] = Field(default_factory=dict)
    """Further options for the server, such as ``device: cpu``; ``true``: without a value."""
    checks: tuple[str, ...] = ()
    allow: Allow = Allow()
    limits: Limits = Limits()
    on_interrupt: Literal["keep", "stop"] = "keep"

    @field_validator("hosts", mode="before")
    @classmethod
    def _host_names(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [
                {"name": item, "address": item} if isinstance(item, str) else item for item in value
            ]
        return value

    @property
    def all_checks(self) -> tuple[str, ...]:
        """The goal's checks, or those that its kind implies."""
        return self.checks or DEFAULT_CHECKS.get(self.kind, ())


def load_goal(path: Path) -> Goal:
    """Read a goal file.

    Raises:
        GoalError: it cannot be read, is no YAML mapping, or a key or value is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GoalError(f"{path}: cannot read the goal file: {_reason(error)}") from error
    try:
        data = _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise GoalError(f"{path}{where}: {problem}") from error
    if not isinstance(data, dict):
        raise GoalError(f"{path}: a goal is a mapping of keys; see `bringup deploy --help`")
    return parse_goal(data, base=path.parent, where=str(path))


class _Loader(yaml.SafeLoader):
    """Reads plain data, and refuses a key that stands twice: one would be passed over."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                problem = f"the key `{name}` stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def parse_goal(data: dict[str, Any], *, base: Path, where: str) -> Goal:
    """Check a goal given as data and make its paths absolute against ``base``.

    Raises:
        GoalError: a key or value is wrong.
    """
    try:
        goal = Goal.model_validate(data)
    except ValidationError as error:
        raise GoalError(f"{where}: {explain(error, Goal)}") from error
    _known_words(goal, where)
    if goal.kind not in DEFAULT_CHECKS:
        raise GoalError(f"{where}: kind: {goal.kind} is not built yet; use serve or diagnose")
    model = _absolute(goal.model, base, where) if _looks_like_path(goal.model, base) else goal.model
    candidates = tuple(
        item.model_copy(update={"venv": _absolute(item.venv, base, where)})
        for item in goal.candidates
    )
    paths = tuple(_absolute(item, base, where) for item in goal.allow.paths)
    allow = goal.allow.model_copy(update={"paths": paths})
    return goal.model_copy(update={"model": model, "candidates": candidates, "allow": allow})


def recorded_goal(data: dict[str, Any], version: str) -> Goal:
    """Read the goal of a recorded run, which may be another version's.

    Raises:
        GoalError: this version does not know all that it says.
    """
    try:
        return Goal.model_validate(data)
    except ValidationError as error:
        words = f"a run of bringup {version} cannot be read by this version"
        raise GoalError(f"{words}: its goal: {explain(error, Goal)}") from error


def _known_words(goal: Goal, where: str) -> None:
    """Refuse names of engines and checks that nothing here knows, and what is not built yet."""
    candidate, *more = goal.candidates
    engines = ["custom", *knowledge.load().engines]
    if more:
        raise GoalError(f"{where}: one candidate a goal for now; several come with images")
    if candidate.engine not in engines:
        raise GoalError(f"{where}: {_unknown('engine', candidate.engine, engines)}")
    if candidate.engine == "custom" and not candidate.serve:
        raise GoalError(f"{where}: an engine `custom` needs `serve`: its argument vector")
    for name in sorted(set(goal.checks) - set(CHECK_NAMES)):
        raise GoalError(f"{where}: {_unknown('check', name, list(CHECK_NAMES))}")
    for host in goal.hosts:
        if host.address != "local":
            raise GoalError(f"{where}: host {host.address}: only `local` can be reached for now")


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known))}"
    return f"unknown {what} `{name}`; {hint}"


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Turn a validation error into one clear line, with the nearest known key for a typo."""
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    spot = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        wrong = str(first["loc"][-1])
        known = sorted(_keys_at(model, first["loc"][:-1]))
        return _unknown("key", wrong, known).replace(f"`{wrong}`", f"`{spot}`")
    if first["type"] == "missing":
        return f"the key `{spot}` is missing"
    words = first["msg"].removeprefix("Value error, ")
    words = f"{words[:1].lower()}{words[1:]}".replace("tuple", "list")
    return f"{spot}: {words} (got {reprlib.repr(first['input'])})"


def _keys_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> set[str]:
    """Return the known keys of the part of ``model`` that ``loc`` leads to."""
    here: type[BaseModel] = model
    for step in loc:
        info = here.model_fields.get(str(step))
        if info is None:
            continue
        parts = [info.annotation, *getattr(info.annotation, "__args__", ())]
        for part in parts:
            if isinstance(part, type) and issubclass(part, BaseModel):
                here = part
                break
    return set(here.model_fields)


def _looks_like_path(model: str, base: Path) -> bool:
    return model.startswith((".", "/", "~")) or (base / model).exists() or model.endswith(".json")


def _absolute(path: str, base: Path, where: str) -> str:
    """Return the path without `..`, so that folders can be compared by their names."""
    try:
        return posixpath.normpath((base / Path(path).expanduser()).absolute())
    except RuntimeError as error:
        raise GoalError(f"{where}: {path}: there is no such user") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "not UTF-8 text"
