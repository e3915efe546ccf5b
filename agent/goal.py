"""What was asked for: the model, where it is to run, and the checks that prove it.

Read from YAML; an unknown key is an error that names the nearest known key. Paths become absolute
here and nowhere else, relative to the goal file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from agent import knowledge
from agent.explain import explain, unknown_word
from agent.goal_hosts import Known, with_hosts
from agent.goal_parts import Allow, Candidate, Host, Kind, Limits, Needs, Part
from agent.problems import Problem
from agent.yaml_file import read_mapping

DEFAULT_CHECKS: dict[str, tuple[str, ...]] = {
    "serve": ("config_parses", "process_up", "health", "chat"),
    "diagnose": ("config_parses",),
}


CHECK_NAMES = (
    "connected",
    "docker_answers",
    "image_present",
    "environment_usable",
    "model_readable",
    "architecture_resolves",
    "config_parses",
    "imports",
    "weights_at_hand",
    "memory_free",
    "port_free",
    "process_up",
    "health",
    "chat",
)
"""Checks that a goal may name; ``checks.py`` says what each does."""
OF_IMAGES = (
    "docker_answers",
    "image_present",
    "architecture_resolves",
    "weights_at_hand",
    "memory_free",
)
"""Those that only a candidate with an image has."""


class GoalError(Problem):
    """The goal cannot be used; the message says what, where and what to do."""


class Goal(Part):
    """A goal, complete and with absolute paths."""

    kind: Kind = "serve"
    model: str = Field(min_length=1)
    """A model directory, a bare config.json, or a hub's name (``org/name``)."""
    revision: str = Field(default="main", pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")
    """Branch, tag or commit of a hub's model."""
    hub: str = Field(default="", pattern=r"^(https?://[^\s@]+)?$")
    """Address of the hub; empty: the default of ``huggingface_hub`` there."""
    hosts: tuple[Host, ...] = Field((Host(),), min_length=1)
    candidates: tuple[Candidate, ...] = Field(min_length=1)
    host: str = Field(default="127.0.0.1", pattern=r"^([A-Za-z0-9][A-Za-z0-9.-]*|[0-9A-Fa-f:.]+)$")
    """The address that the server listens on."""
    port: int = Field(8000, ge=1, le=65535)
    name: str = Field(default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*)?$")
    """Name of the server's container; empty: one made of the run's id."""
    options: dict[str, bool | str | int | float] = Field(default_factory=dict)
    """Further options for the server, such as ``device: cpu``; ``true``: without a value."""
    checks: tuple[str, ...] = ()
    needs: Needs = Needs()
    allow: Allow = Allow()
    limits: Limits = Limits()
    on_interrupt: Literal["keep", "stop"] = "keep"

    @property
    def all_checks(self) -> tuple[str, ...]:
        """The goal's checks, or those that its kind implies; an image's engine counts too."""
        implied = DEFAULT_CHECKS.get(self.kind, ())
        of_images = all(item.image for item in self.candidates)
        return self.checks or (("architecture_resolves", *implied) if of_images else implied)


def form_of(data: dict[str, Any]) -> type[Goal]:
    """Return the form of a goal of that kind: one that makes a host ready has no model."""
    if data.get("kind") != "provision":
        return Goal
    from agent.provision_goal import ProvisionGoal

    return ProvisionGoal


def load_goal(path: Path, known: Known = lambda: None) -> Goal:
    """Read a goal file; hosts that it names are looked up in the inventory.

    Args:
        path: the file.
        known: returns the inventory, where there is one.

    Raises:
        GoalError: it cannot be read, is no YAML mapping, or a key or value is wrong.
        InventoryError: the inventory cannot be used, or does not have what is named.
    """
    data = read_mapping(path, "goal", "`bringup deploy --help`", GoalError)
    return parse_goal(with_hosts(data, known), base=path.parent, where=str(path))


def parse_goal(data: dict[str, Any], *, base: Path, where: str) -> Goal:
    """Check a goal given as data and make its paths absolute against ``base``.

    Raises:
        GoalError: a key or value is wrong.
    """
    form = form_of(data)
    try:
        goal = form.model_validate(data)
    except ValidationError as error:
        raise GoalError(f"{where}: {explain(error, form)}") from error
    _known_words(goal, where)
    if goal.kind == "provision":
        return goal  # its folders are the host's, and there is no model
    if goal.kind not in DEFAULT_CHECKS:
        raise GoalError(f"{where}: kind: {goal.kind} is not built yet; use serve or diagnose")
    return _absolute_paths(goal, base, where)


def _absolute_paths(goal: Goal, base: Path, where: str) -> Goal:
    """Make paths of this machine absolute; those of another one have to be so already."""
    remote = goal.hosts[0].is_remote

    def path(text: str) -> str:
        if not remote:
            return _absolute(text, base, where)
        if not text.startswith("/"):
            raise GoalError(f"{where}: {text}: a path on {goal.hosts[0].name} has to be absolute")
        return posixpath.normpath(text)

    is_path = goal.model.startswith((".", "/", "~")) or goal.model.endswith(".json")
    if is_path or (not remote and (base / goal.model).exists()):
        model = path(goal.model)
    else:
        model = goal.model
        _need_models_folder(goal, where)
    candidates = tuple(
        item.model_copy(update={"venv": path(item.venv)}) if item.venv else item
        for item in goal.candidates
    )
    allow = goal.allow.model_copy(update={"paths": tuple(map(path, goal.allow.paths))})
    return goal.model_copy(update={"model": model, "candidates": candidates, "allow": allow})


def _need_models_folder(goal: Goal, where: str) -> None:
    """A hub's model needs a folder to be fetched into; only images fetch yet."""
    if any(item.image for item in goal.candidates):
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", goal.model, re.ASCII):
            raise GoalError(
                f"{where}: model: {goal.model} is neither a path nor a hub's name (org/name)"
            )
        if not goal.hosts[0].models:
            raise GoalError(
                f"{where}: hosts: `models` has to name a folder on {goal.hosts[0].name} for"
                f" the weights of {goal.model}"
            )


def recorded_goal(data: dict[str, Any], version: str) -> Goal:
    """Read the goal of a recorded run, which may be another version's.

    Raises:
        GoalError: this version does not know all that it says.
    """
    form = form_of(data)
    try:
        return form.model_validate(data)
    except ValidationError as error:
        words = f"a run of bringup {version} cannot be read by this version"
        raise GoalError(f"{words}: its goal: {explain(error, form)}") from error


def _known_words(goal: Goal, where: str) -> None:
    """Refuse names of engines and checks that nothing here knows, and what is not built yet."""
    engines = ["custom", *knowledge.load().engines]
    for candidate in goal.candidates:
        if candidate.engine not in engines:
            raise GoalError(f"{where}: {unknown_word('engine', candidate.engine, engines)}")
        if candidate.engine == "custom" and not candidate.serve:
            raise GoalError(f"{where}: an engine `custom` needs `serve`: its argument vector")
    if len(goal.hosts) > 1:
        raise GoalError(f"{where}: hosts: one host a goal for now; several come with clusters")
    for host in goal.hosts:
        if host.is_remote:
            _known_address(host.address, where)
    images = any(item.image for item in goal.candidates)
    if images and goal.host != "localhost" and not re.fullmatch(r"[\d.]+|[0-9A-Fa-f:]+", goal.host):
        raise GoalError(
            f"{where}: host: a container listens on an address, and {goal.host} is none"
        )
    _known_checks(goal, where)


def _known_checks(goal: Goal, where: str) -> None:
    """Refuse checks that nothing knows, and those of images where a candidate is none."""
    venvs = [item.venv for item in goal.candidates if item.venv]
    for name in sorted(goal.checks):
        if name not in CHECK_NAMES:
            raise GoalError(f"{where}: {unknown_word('check', name, list(CHECK_NAMES))}")
        if venvs and name in OF_IMAGES:
            raise GoalError(f"{where}: the check `{name}` is for images, and {venvs[0]} is none")


def _known_address(address: str, where: str) -> None:
    """Refuse an address that ssh would not take for one, such as an option."""
    from tools.connectors.ssh_config import parse_address

    try:
        parse_address(address)
    except ValueError as error:
        raise GoalError(f"{where}: hosts: {error}") from error


def _absolute(path: str, base: Path, where: str) -> str:
    """Return the path without `..`, so that folders can be compared by their names."""
    try:
        return posixpath.normpath((base / Path(path).expanduser()).absolute())
    except RuntimeError as error:
        raise GoalError(f"{where}: {path}: there is no such user") from error
