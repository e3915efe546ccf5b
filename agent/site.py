"""The place that a goal is about: candidate, engine, interpreter and port."""

from __future__ import annotations

from dataclasses import dataclass

from agent import knowledge
from agent.fold import View
from agent.goal import Candidate, Goal
from agent.knowledge import Engine
from tools.base import Subject


@dataclass(frozen=True, slots=True)
class Site:
    """One candidate environment on one host."""

    goal: Goal
    candidate: Candidate
    engine: Engine
    target: str
    host_python: str
    port: int

    @property
    def python(self) -> str:
        """The environment's interpreter."""
        return f"{self.candidate.venv}/bin/python"

    @property
    def environment(self) -> Subject:
        """The environment as a subject."""
        return Subject(kind="environment", key=self.candidate.venv)

    @property
    def base_url(self) -> str:
        """Where the server is asked for: by an address, also where it listens on all of them."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.goal.host, self.goal.host)  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def package(self) -> str:
        """The distribution whose version decides which models the engine knows."""
        return self.engine.package

    def serve_prefix(self) -> tuple[str, ...]:
        """The start of the server's argument vector, before any option."""
        return tuple(word.format(bin=f"{self.candidate.venv}/bin") for word in self.engine.serve)


def site_of(view: View) -> Site:
    """Read the site from the goal and from what the run has chosen since."""
    goal = view.need_goal()
    candidate, host = goal.candidates[0], goal.hosts[0]
    engine = engine_of(candidate)
    return Site(goal, candidate, engine, host.name, host.python, view.port or goal.port)


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
