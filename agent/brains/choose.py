"""Chooses who decides, by settings or by a run's header, and examines a model's endpoint first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from agent.brains.base import OWN_BRAIN, Brain, BrainFailed, Reply, Request
from agent.brains.playbook import Playbook
from agent.events import RunStarted
from agent.goal import Goal
from agent.problems import Problem, Unreachable
from agent.redact import Redactor, secrets_of
from agent.settings import Price, Settings, environment, model_key, model_url
from tools.errors import UnknownTool
from tools.registry import find

PLAYBOOK, OPENAI = OWN_BRAIN, "openai"
BRAINS = (PLAYBOOK, OPENAI)
"""Brains by name."""


class UnknownBrain(Problem):
    """There is no brain of that name, or it lacks what it needs."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Who decides, and where it is asked."""

    name: str
    base_url: str = ""
    model: str = ""

    @property
    def endpoint(self) -> dict[str, str]:
        """What a run's header says of it: no user, no password, no query, which may be a key."""
        if self.name == PLAYBOOK:
            return {}
        parts = urlsplit(self.base_url)
        plain = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        return {"base_url": plain.geturl(), "model": self.model}


@dataclass(frozen=True, slots=True)
class Asked:
    """What flags ask for; ``None`` where they do not."""

    brain: str | None = None
    base_url: str | None = None
    model: str | None = None


def chosen_by(settings: Settings) -> Choice:
    """Return the choice that settings make.

    Raises:
        UnknownBrain: there is no such brain, or ``openai`` without a model.
    """
    name = settings.brain or (OPENAI if settings.model else PLAYBOOK)
    if name not in BRAINS:
        raise UnknownBrain(f"there is no brain `{name}`; known: {', '.join(BRAINS)}")
    if name == PLAYBOOK:
        return Choice(PLAYBOOK)
    if not settings.model:
        raise UnknownBrain(
            "the brain `openai` needs a model: say --model NAME, or set it in the settings"
        )
    return Choice(OPENAI, model_url(settings), settings.model)


def chosen_then(header: RunStarted, settings: Settings, asked: Asked) -> Choice:
    """Return who goes on with a run: what is asked for now, else who it was begun with.

    Args:
        header: the run's.
        settings: name a model and its endpoint where neither the flags nor the header do.
        asked: the flags of now.

    Raises:
        UnknownBrain: there is no such brain, or ``openai`` without a model.
    """
    name = asked.brain or (OPENAI if asked.model or asked.base_url else header.brain)
    then = {key: str(value) for key, value in header.endpoint.items()}
    update = {
        "brain": name,
        "model": asked.model or then.get("model") or settings.model,
        "base_url": asked.base_url or then.get("base_url") or settings.base_url,
    }
    return chosen_by(settings.model_copy(update=update))


def brain_of(
    choice: Choice, settings: Settings, goal: Goal | None, tell: Callable[[str], None]
) -> Brain:
    """Return the brain, ready to be asked.

    Args:
        choice: who decides.
        settings: how a model is asked.
        goal: what it is for; a limit in USD needs a price.
        tell: is told that an endpoint is examined, which takes some seconds.

    Raises:
        UnknownBrain: the endpoint refuses the key, does not know the model, or has no price.
        Unreachable: the endpoint does not answer.
    """
    if choice.name == PLAYBOOK:
        return Playbook()
    _need_tools(settings.model_tools)
    price = settings.prices.get(choice.model)
    if goal is not None and goal.limits.usd and price is None:
        raise UnknownBrain(
            f"limits.usd needs a price for {choice.model}: set it in the settings file, under"
            f' [prices."{choice.model}"] with input and output in USD a million tokens'
        )
    return _model(choice, settings, price, tell)


def _need_tools(names: Sequence[str]) -> None:
    for name in names:
        try:
            find(name)
        except UnknownTool as error:
            raise UnknownBrain(f"model_tools: {error}") from error


def _model(
    choice: Choice, settings: Settings, price: Price | None, tell: Callable[[str], None]
) -> Brain:
    from agent.brains.address import Address
    from agent.brains.endpoint import Endpoint
    from agent.brains.failures import Kind, ModelFailed
    from agent.brains.openai_chat import OpenAIChat
    from agent.brains.selftest import examine
    from agent.brains.talk import Options

    address = Address(choice.base_url, choice.model)
    endpoint = Endpoint(address, model_key(), timeout_s=settings.model_timeout_s)
    try:
        dialect = examine(endpoint, cache=cache_dir(), tell=tell)
    except ModelFailed as error:
        endpoint.close()
        if error.failure.kind in (Kind.NETWORK, Kind.TIMEOUT, Kind.SERVER, Kind.RATE):
            raise Unreachable(error.failure.text) from error
        raise UnknownBrain(error.failure.text) from error
    for note in dialect.notes:
        tell(f"note: {note}")
    redactor = Redactor(secrets_of(environment()), {})
    return OpenAIChat(
        ask=endpoint.ask,
        model=choice.model,
        dialect=dialect,
        clean=redactor.redact,
        options=Options(
            reply_tokens=settings.reply_tokens,
            context_tokens=settings.context_tokens,
            price=price,
            tools=settings.model_tools,
        ),
        close=endpoint.close,
    )


def cache_dir() -> Path:
    """Return the folder for what self-tests have found."""
    return Path(platformdirs.user_cache_dir("bringup")) / "endpoints"


@dataclass
class NotAsked:
    """Stands for the brain of a run that is only looked at, stopped or undone."""

    name: str

    def reply(self, request: Request) -> Reply:
        """Answer nothing.

        Raises:
            BrainFailed: always.
        """
        raise BrainFailed(f"the brain `{self.name}` is not asked here; `bringup resume` goes on")
