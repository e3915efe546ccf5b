"""The place that a goal is about: candidate, engine, interpreter and port."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Literal

from agent import knowledge
from agent.fold import View
from agent.goal import Goal
from agent.goal_parts import Candidate, Host
from agent.knowledge import Engine
from tools.base import Subject

MOUNTED_MODEL = "/bringup/model"
"""Where a container sees the model's folder."""


@dataclass(frozen=True, slots=True)
class Site:
    """One candidate on one host."""

    goal: Goal
    candidate: Candidate
    engine: Engine
    host: Host
    port: int
    image: str = ""
    """The image to be used: the candidate's, or what was derived from it; empty for a venv."""

    @property
    def target(self) -> str:
        """The host's name, for calls."""
        return self.host.name

    @property
    def remote(self) -> bool:
        """Whether the host is reached over ssh."""
        return self.host.is_remote

    @property
    def host_python(self) -> str:
        """A Python on the host, for probes that need no environment."""
        return self.host.python

    @property
    def is_image(self) -> bool:
        """Whether the candidate is a container image."""
        return bool(self.image)

    @property
    def kind(self) -> Literal["venv", "image", "host"]:
        """What is worked on: an environment, an image, or a host that is made ready."""
        if self.goal.kind == "provision":
            return "host"
        return "image" if self.is_image else "venv"

    @property
    def python(self) -> str:
        """The environment's interpreter; in an image, whichever its PATH has."""
        return "python3" if self.is_image else f"{self.candidate.venv}/bin/python"

    @property
    def place(self) -> str:
        """The environment's folder, or the image."""
        return self.image or self.candidate.venv

    @property
    def environment(self) -> Subject:
        """The environment as a subject."""
        return Subject(kind="image" if self.is_image else "environment", key=self.place)

    @property
    def base_url(self) -> str:
        """Where the server is asked for: by an address, also where it listens on all of them."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.goal.host, self.goal.host)  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def package(self) -> str:
        """The distribution whose version decides which models the engine knows."""
        return self.engine.package

    @property
    def from_hub(self) -> bool:
        """Whether the model has to be fetched to the host."""
        return not self.goal.model.startswith("/")

    @property
    def host_model(self) -> str:
        """The model on the host: the goal's path, or the folder that a hub's model goes to."""
        if not self.from_hub or not self.host.models:
            return self.goal.model
        org, _, name = self.goal.model.partition("/")
        revision = self.goal.revision.replace("/", "--")
        folder = name if revision == "main" else f"{name}@{revision}"
        return posixpath.join(self.host.models, org, folder)

    @property
    def model_folder(self) -> str:
        """The folder on the host that a container gets to see."""
        path = self.host_model
        return posixpath.dirname(path) if path.endswith(".json") else path

    @property
    def config_path(self) -> str:
        """The config.json on the host."""
        path = self.host_model
        return path if path.endswith(".json") else posixpath.join(path, "config.json")

    @property
    def served_model(self) -> str:
        """The model as the server is told it."""
        return MOUNTED_MODEL if self.is_image else self.goal.model

    def serve_prefix(self) -> tuple[str, ...]:
        """The start of the server's argument vector, before any option."""
        return tuple(self.filled(word, {}) for word in self.engine.serve)

    def filled(self, word: str, more: dict[str, str]) -> str:
        """Fill names in by plain replacement: a word may be JSON and have braces of its own."""
        if self.is_image:
            word = word.replace("{bin}/python", self.python).replace("{bin}/", "")
        else:
            more = {"bin": f"{self.candidate.venv}/bin", **more}
        for name, value in {"python": self.python, **more}.items():
            word = word.replace("{" + name + "}", value)
        return word


def site_of(view: View) -> Site:
    """Read the site from the goal and from what the run has chosen since."""
    goal = view.need_goal()
    candidate, host = goal.candidates[view.candidate], goal.hosts[0]
    image = view.effects.images.get(candidate.image, candidate.image)
    return Site(goal, candidate, engine_of(candidate), host, view.port or goal.port, image)


def engine_of(candidate: Candidate) -> Engine:
    """Return the playbook's engine, or one made of the candidate's own words."""
    if candidate.engine == "custom":
        return Engine(
            package="transformers",
            modules=candidate.modules,
            registry=candidate.registry,
            serve=candidate.serve,
            health=candidate.health,
        )
    known = knowledge.load().engines[candidate.engine]
    if candidate.registry:
        return known.model_copy(update={"registry": (*known.registry, *candidate.registry)})
    return known
