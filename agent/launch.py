"""A server's argument vector, made from what the installed release's own ``--help`` knows."""

from __future__ import annotations

from collections.abc import Mapping

from agent.fold import View
from agent.site import Site
from agent.values import Purpose, ToolCall
from tools.jobs import StopJob
from tools.server import HelpObservation, ServerOptions


def help_call(view: View, site: Site) -> ToolCall | None:
    """Return the call that asks the engine's own parser; ``None`` for an engine given in full."""
    if site.candidate.engine == "custom":
        return None
    args = ServerOptions.args_type.model_validate({"argv": site.serve_prefix()})
    return ToolCall(
        tool=ServerOptions().name, args=args.model_dump(mode="json"), target=site.target
    )


def server_argv(site: Site, seen: HelpObservation | None) -> tuple[str, ...]:
    """Build the argument vector of the server.

    Args:
        site: the candidate.
        seen: what the engine's parser knows; ``None`` for an engine that the goal gives in full.
    """
    fill = {
        "python": site.python,
        "bin": f"{site.candidate.venv}/bin",
        "model": site.goal.model,
        "host": site.goal.host,
        "port": str(site.port),
    }
    if seen is None:
        return tuple(_filled(word, fill) for word in site.candidate.serve)
    wanted: dict[str, bool | str] = {
        name: _filled(value, fill) for name, value in site.engine.options.items()
    }
    for name, value in site.goal.options.items():
        wanted[f"--{name}"] = value if isinstance(value, bool) else str(value)
    words = [*site.serve_prefix(), *_model_words(site, seen)]
    for name, value in wanted.items():
        known = _spelling(name, seen.options)
        if known is not None and value is not False:
            words += [known] if value is True else [known, str(value)]
    return tuple(words)


def _filled(word: str, fill: Mapping[str, str]) -> str:
    """Fill names in by plain replacement: a word may be JSON and have braces of its own."""
    for name, value in fill.items():
        word = word.replace("{" + name + "}", value)
    return word


def unknown_options(site: Site, seen: HelpObservation) -> list[str]:
    """Return the options that the goal asks for and the installed release does not know."""
    return [name for name in site.goal.options if _spelling(f"--{name}", seen.options) is None]


def _model_words(site: Site, seen: HelpObservation) -> list[str]:
    for way in site.engine.model_by:
        if way.startswith("-"):
            known = _spelling(way, seen.options)
            if known is not None:
                return [known, site.goal.model]
        elif way.lower() in {name.lower() for name in seen.positionals}:
            return [site.goal.model]
    return [site.goal.model]


def _spelling(option: str, known: tuple[str, ...] | list[str]) -> str | None:
    """Return the option as the release spells it: ``--force-model`` may be ``--force_model``."""
    plain = option.replace("_", "-")
    return next((name for name in known if name.replace("_", "-") == plain), None)


def stop_call(job: str, started: ToolCall, why: str = "it is to be started again") -> ToolCall:
    """Return the call that ends a server of this run, by the call that started it."""
    return ToolCall(
        tool=StopJob().name,
        args={"job": job},
        target=started.target,
        purpose=Purpose(kind="recover", ref=started.id),
        why=why,
    )
