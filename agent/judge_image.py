"""How the checks of an image and its container judge what was observed: pure functions."""

from __future__ import annotations

from agent import judge
from agent.judge import Verdict
from agent.site import Site
from tools.base import Observation
from tools.containers import ContainerState
from tools.docker_engine import EngineState
from tools.image_probe import ImageAnswers
from tools.images import ImageState
from tools.memory import MemoryState
from tools.weights import LocalWeights


def docker(seen: EngineState, site: Site) -> Verdict:
    """The engine told its version."""
    return Verdict(True, f"Docker {seen.server_version}, {seen.architecture}")


def image(seen: ImageState, site: Site) -> Verdict:
    """The image is on the host; where it is not, it may be pulled."""
    if seen.present:
        return Verdict(True, f"{site.image} is there, {seen.size_mib} MiB")
    return Verdict(False, f"{site.image} is not on the host")


def unjudged(seen: Observation, site: Site) -> Verdict:
    """Nothing: the check judges by more than this observation."""
    return Verdict(None, "it cannot be told by this alone")


def model(seen: LocalWeights, site: Site) -> Verdict:
    """config.json is on the host."""
    if seen.config:
        return Verdict(True, f"config.json is in {site.model_folder}")
    if site.from_hub:
        return Verdict(False, f"the config.json of {site.goal.model} is not on the host yet")
    return Verdict(False, "no config.json", f"no config.json at {site.goal.model}")


def weights(seen: LocalWeights, site: Site) -> Verdict:
    """All weights are there and whole."""
    if seen.complete:
        return Verdict(True, f"{seen.shards} files, {seen.bytes_present / 1e9:.1f} GB")
    if site.from_hub:
        return Verdict(False, f"the weights are not complete: {seen.problem}")
    return Verdict(False, "weights missing", f"the weights are not complete: {seen.problem}")


CUT = "broke off"
"""How a probe says that its container was ended before it had answered all."""


def _cut_off(seen: ImageAnswers, name: str, site: Site) -> Verdict | None:
    """Say that nothing is known where the probe was ended: the image is not to blame."""
    why = seen.errors.get(name, "")
    return Verdict(None, f"the question to {site.image} {why}") if CUT in why else None


def usable(seen: ImageAnswers, site: Site) -> Verdict:
    """Python runs in the image."""
    cut = _cut_off(seen, "environment", site) or _cut_off(seen, "engine", site)
    if cut is not None:
        return cut
    if seen.environment is None or not seen.environment.exists:
        why = seen.errors.get("environment", "no answer")
        return Verdict(False, "no usable Python", f"no Python in {site.image}: {why}")
    return Verdict(True, f"Python {seen.environment.python_version}")


def architecture(seen: ImageAnswers, site: Site) -> Verdict:
    """The engine in the image has the model's architecture; the goal's own is not asked."""
    if not site.engine.module:
        return Verdict(True, "the goal's own server; its start will tell")
    engine = seen.engine
    if engine is None or not engine.found:
        why = seen.errors.get("engine", f"none of {site.engine.module} is installed there")
        return Verdict(False, "no engine", f"no engine in {site.image}: {why}")
    name = f"{engine.distribution or engine.module} {engine.version or '?'}"
    if not engine.version_known and engine.file_version not in ("", engine.version):
        name = f"{engine.distribution or engine.module} {engine.file_version}"
        name += f" (its metadata says {engine.version or 'nothing'})"
    if engine.knows_architecture:
        files = ", ".join(engine.model_files)
        return Verdict(True, f"{name} has {engine.architecture}" + (f" ({files})" if files else ""))
    if engine.knows_architecture is None:
        return Verdict(True, f"{name} does not tell its models; the start will")
    near = f"; nearest: {', '.join(engine.near)}" if engine.near else ""
    words = f"{name} in {site.image} has no model {engine.architecture or engine.model_type}"
    return Verdict(False, "the engine lacks the model", f"{words}{near}")


def config(seen: ImageAnswers, site: Site) -> Verdict:
    """The image reads the model's configuration."""
    if seen.config is None:
        why = seen.errors.get("config", "no answer")
        return Verdict(None, f"{site.image} did not say whether it reads the config: {why}")
    if seen.config.json_error:
        words = f"config.json is not valid: {seen.config.json_error}"
        return Verdict(False, "broken config.json", words)
    return judge.config(seen.config, site)


def imports(seen: ImageAnswers, site: Site) -> Verdict:
    """Every module came, or none was asked for."""
    if seen.imports is None and "imports" not in seen.errors:
        return Verdict(True, "the engine names no modules")
    if seen.imports is None:
        why = seen.errors.get("imports", "no answer")
        return Verdict(None, f"{site.image} did not say what it can import: {why}")
    return judge.imports(seen.imports, site)


def memory(seen: MemoryState, site: Site) -> Verdict:
    """As much memory as the goal needs is available."""
    need, have = site.goal.needs.memory_mib, seen.available_mib
    if have >= need:
        return Verdict(True, f"{have} MiB available, {need} needed")
    words = f"{need} MiB of memory are needed and {have} MiB are available"
    return Verdict(False, "too little memory", words)


def container(seen: ContainerState, site: Site) -> Verdict:
    """The server's container runs."""
    if not seen.present:
        return Verdict(False, "the container is gone", "the server's container is gone")
    if seen.state in ("created", "restarting"):
        return Verdict(False, seen.state, f"the server's container is {seen.state}: {seen.error}")
    if seen.state == "running":
        return Verdict(True, f"{seen.name} runs")
    killed = ", killed since memory ran out" if seen.oom_killed else ""
    words = f"the server's container {seen.state} with exit code {seen.exit_code}{killed}"
    return Verdict(False, words, f"{seen.error}\n{words}".strip())
