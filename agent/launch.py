"""A server's argument vector, made from what the installed release's own ``--help`` knows."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fold import View
from agent.site import Site
from agent.values import Purpose, ToolCall
from tools.container_changes import StopContainer
from tools.jobs import StopJob
from tools.server_options import HelpObservation, ServerOptions


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
        seen: what the engine's parser knows; ``None`` where it does not tell, so that options go
            by the playbook, and for an engine that the goal gives in full.
    """
    fill = {
        "model": site.served_model,
        "host": site.goal.host,
        "port": str(site.port),
    }
    if site.candidate.engine == "custom":
        return tuple(site.filled(word, fill) for word in site.candidate.serve)
    wanted: dict[str, bool | str] = {
        name: site.filled(value, fill) for name, value in site.engine.options.items()
    }
    for name, value in site.goal.options.items():
        wanted[f"--{name}"] = value if isinstance(value, bool) else str(value)
    known_options = seen.options if seen else list(wanted)
    words = [*site.serve_prefix(), *_model_words(site, seen)]
    for name, value in wanted.items():
        known = _spelling(name, known_options)
        if known is not None and value is not False:
            words += [known] if value is True else [known, str(value)]
    return tuple(words)


def unknown_options(site: Site, seen: HelpObservation) -> list[str]:
    """Return the options that the goal asks for and the installed release does not know."""
    return [name for name in site.goal.options if _spelling(f"--{name}", seen.options) is None]


def _model_words(site: Site, seen: HelpObservation | None) -> list[str]:
    for way in site.engine.model_by:
        if way.startswith("-"):
            known = _spelling(way, seen.options) if seen else way
            if known is not None:
                return [known, site.served_model]
        elif seen and way.lower() in {name.lower() for name in seen.positionals}:
            return [site.served_model]
    return [site.served_model]


def _spelling(option: str, known: Sequence[str]) -> str | None:
    """Return the option as the release spells it: ``--force-model`` may be ``--force_model``."""
    plain = option.replace("_", "-")
    return next((name for name in known if name.replace("_", "-") == plain), None)


def stop_call(job: str, started: ToolCall, why: str = "it is to be started again") -> ToolCall:
    """Return the call that ends a server of this run, by the call that started it."""
    by_name = started.tool == "start_service"
    return ToolCall(
        tool=StopContainer().name if by_name else StopJob().name,
        args={"name" if by_name else "job": job},
        target=started.target,
        purpose=Purpose(kind="recover", ref=started.id),
        why=why,
    )
