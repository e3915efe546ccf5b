"""The checks of a candidate that is a container image."""

from __future__ import annotations

from agent import judge, judge_image
from agent.check import (
    CONNECTED,
    PORT_FREE,
    REACHED,
    Check,
    call_for,
    of_environment,
    of_host,
    of_model,
    of_port,
    pins_of,
)
from agent.conflicts import declarers, module_of
from agent.fold import View
from agent.image_offer import judge_offer, judge_room, offer_call, room_call
from agent.judge import Verdict
from agent.service_looks import (
    chat_of,
    container_call,
    health_call,
    judge_container,
    judge_name,
    name_call,
)
from agent.site import Site
from agent.values import ToolCall
from tools.base import Subject
from tools.docker import CONTAINERS, ENGINE
from tools.docker_engine import DockerInfo
from tools.image_probe import ImageAnswers, ImageProbe
from tools.images import InspectImage
from tools.memory import MEMORY, MemoryFree
from tools.weights import WeightsState


def _docker(view: View, site: Site) -> ToolCall:
    return call_for(site, DockerInfo().name)


def _image(view: View, site: Site) -> ToolCall:
    return call_for(site, InspectImage().name, image=site.image)


def _weights(view: View, site: Site) -> ToolCall:
    return call_for(site, WeightsState().name, python=site.host_python, folder=site.model_folder)


def probe_call(view: View, site: Site) -> ToolCall:
    """Return the call that asks the image all that matters, in one start of a container."""
    return call_for(
        site,
        ImageProbe().name,
        image=site.image,
        config=site.config_path,
        engines=site.engine.layouts(site.filled),
        modules=_modules(view, site),
        pins_of=pins_of(site),
    )


def _modules(view: View, site: Site) -> tuple[str, ...]:
    """Return what is imported besides the engine's own: all, where the goal alone names them."""
    named = () if site.engine.module else site.engine.modules
    return tuple(dict.fromkeys((*named, *conflicting_modules(view, site))))


def answers_of(view: View, site: Site) -> ImageAnswers | None:
    """Return what the image in use has answered, if it was asked."""
    call = probe_call(view, site)
    known = view.facts.find(call.tool, call.target, call.args)
    seen = known.observation if known else None
    return seen if isinstance(seen, ImageAnswers) else None


def conflicting_modules(view: View, site: Site) -> tuple[str, ...]:
    """Return modules of distributions that pip said conflict with what a build moved.

    Whether they still import in the new image is the evidence by which a conflict is judged.
    """
    built = view.effects.built.get(site.image)
    lines = built.observation.get("conflicts", ()) if built else ()
    return tuple(sorted({module_of(name) for name in declarers(list(lines))}))


def _memory(view: View, site: Site) -> ToolCall | None:
    if not site.goal.needs.memory_mib:
        return None
    return call_for(site, MemoryFree().name, python=site.host_python)


def _of_weights(site: Site) -> Subject:
    return Subject(kind="weights", key=site.model_folder)


def _of_containers(site: Site) -> Subject:
    return CONTAINERS


def _of_engine(site: Site) -> Subject:
    return ENGINE


def _of_memory(site: Site) -> Subject:
    return MEMORY


USABLE = ("environment_usable",)
IMAGE_CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        CONNECTED,
        Check(
            "docker_answers",
            "the Docker engine answers",
            _docker,
            judge_image.docker,
            _of_engine,
            REACHED,
            of_candidate=False,
            refusal_decides=True,
        ),
        Check(
            "image_offered",
            "a registry offers the image for this machine",
            offer_call,
            judge_image.unjudged,
            of_environment,
            ("docker_answers",),
            judge_by=judge_offer,
            refusal_decides=True,
        ),
        Check(
            "image_has_room",
            "the disk has room for the image",
            room_call,
            judge_image.unjudged,
            of_host,
            ("image_offered",),
            judge_by=judge_room,
        ),
        Check(
            "image_present",
            "the image is on the host",
            _image,
            judge_image.image,
            of_environment,
            ("docker_answers",),
        ),
        Check(
            "model_readable",
            "the model's config.json can be read",
            _weights,
            judge_image.model,
            of_model,
            ("image_present",),
            of_candidate=False,
        ),
        Check(
            "environment_usable",
            "the image's Python runs",
            probe_call,
            judge_image.usable,
            of_environment,
            ("image_present", "model_readable"),
            refusal_decides=True,
            of_image=True,
        ),
        Check(
            "architecture_resolves",
            "the engine has the model's architecture",
            probe_call,
            judge_image.architecture,
            of_environment,
            USABLE,
            of_image=True,
        ),
        Check(
            "config_parses",
            "the environment knows the model's configuration",
            probe_call,
            judge_image.config,
            of_environment,
            ("architecture_resolves",),
            of_image=True,
        ),
        Check(
            "imports",
            "what the engine needs can be imported",
            probe_call,
            judge_image.imports,
            of_environment,
            USABLE,
            of_image=True,
        ),
        Check(
            "weights_at_hand",
            "the weights are on the host, complete and whole",
            _weights,
            judge_image.weights,
            _of_weights,
            ("model_readable",),
            of_candidate=False,
        ),
        Check(
            "memory_free",
            "the host has the memory that the goal needs",
            _memory,
            judge_image.memory,
            _of_memory,
            REACHED,
            Verdict(True, "the goal names no need"),
            of_candidate=False,
        ),
        Check(
            "name_free",
            "no other container has the server's name",
            name_call,
            judge_image.unjudged,
            _of_containers,
            ("docker_answers",),
            Verdict(True, "the name is made of the run's id"),
            of_candidate=False,
            judge_by=judge_name,
        ),
        PORT_FREE,
        Check(
            "process_up",
            "the server's container runs",
            container_call,
            judge_image.unjudged,
            _of_containers,
            judge_by=judge_container,
        ),
        Check(
            "health",
            "the server answers its health check",
            health_call,
            judge.health,
            of_port,
            ("process_up",),
            same_by=("url", "container"),
        ),
        Check(
            "chat",
            "the server gives a well-formed answer",
            chat_of,
            judge.chat,
            of_port,
            ("health",),
            same_by=("base_url", "model"),
        ),
    )
}
"""By name."""
