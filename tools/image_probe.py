"""All that an image can tell about a model, by one start of a container."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from tools.autoconfig import ConfigProbe, ConfigVerdict
from tools.base import Args, CallContext, Observation, Subject, Tool
from tools.command import Command, Ending, Result
from tools.docker import ImageRef, image_subject
from tools.docker_run import Mount, MountPath, probe_command, ran
from tools.engine_probe import EngineLayout, EngineProbe, EngineState, Name
from tools.errors import BadReply, ToolFailed
from tools.imports import ImportOutcomes, ImportProbe, ModuleName
from tools.packages import EnvironmentState, PythonEnvironment
from tools.pip import PackageName
from tools.server_options import HelpObservation, ServerOptions
from tools.weights import model_subject

CONFIG = "/bringup/model/config.json"
"""Where the container sees the config."""
FIND_PYTHON = (
    "p=$(command -v python3 || command -v python) ||"
    ' { echo "there is no python on its PATH" >&2; exit 127; }; exec "$p" - "$@"'
)
START_S = 15.0
"""How much longer than its answers a container may take to start."""
ANSWERS: dict[str, Tool[Any, Any]] = {
    "environment": PythonEnvironment(),
    "engine": EngineProbe(),
    "config": ConfigProbe(),
    "imports": ImportProbe(),
    "options": ServerOptions(),
}
"""Who reads which answer."""


class ImageProbeArgs(Args):
    """Which image, and what it is asked."""

    image: ImageRef
    config: MountPath | Literal[""] = Field(default="", description="A config.json, or its folder.")
    engines: tuple[EngineLayout, ...] = ()
    """Looked for in this order; the first that is there is asked."""
    architecture: Name = Field(default="", description="Left out: that of the config.")
    model_type: Name = Field(default="", description="Left out: that of the config.")
    modules: tuple[ModuleName, ...] = Field(default=(), description="Besides those of the engine.")
    pins_of: tuple[PackageName, ...] = Field(
        default=(),
        description="Packages of which the installed packages' own requirements are listed.",
    )
    python: str = Field(
        default="",
        pattern=r"^(/[^\x00]*/python[0-9.]*)?$",
        description="The image's interpreter; left out: the python3 of its own PATH.",
    )
    probe_limit_s: float = Field(default=180.0, gt=0, description="For each of the answers.")
    limit_s: float = Field(default=300.0, gt=0, description="For all of them.")


class ImageAnswers(Observation):
    """What an image answered; what is ``None`` was not asked, or ``errors`` says why."""

    image: str
    python: str = ""
    """The interpreter that was asked."""
    environment: EnvironmentState | None = None
    """Its ``writable`` is that of a read-only container and says nothing of the image."""
    engine: EngineState | None = None
    config: ConfigVerdict | None = None
    imports: ImportOutcomes | None = None
    options: HelpObservation | None = None
    """Of the engine's server."""
    errors: dict[str, str] = Field(default_factory=dict)
    """Why an answer is missing, by its name above."""

    def headline(self) -> str:
        """Engine, what it knows, whether the config parses, and what is missing."""
        words = [self.engine.headline()] if self.engine else []
        if self.environment:
            words.append(f"transformers {self.environment.versions.get('transformers', 'missing')}")
        if self.config:
            verb = "parses" if self.config.parses else "does not parse"
            words.append(f"config {verb}")
        if self.imports and not self.imports.all_ok:
            words.append(self.imports.headline())
        words += [f"no answer on {name}" for name in self.errors]
        return "; ".join(words)[:200] or f"Python {self.python}"


class _Answer(BaseModel):
    """How one question went, as the script in the container tells it."""

    name: str
    ending: Ending
    code: int | None = None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""
    duration_s: float = 0.0
    question: dict[str, Any] = Field(default_factory=dict)

    @property
    def result(self) -> Result:
        """The same as a command's result."""
        return Result(**self.model_dump(exclude={"name", "question"}))


class ImageProbe(Tool[ImageProbeArgs, ImageAnswers]):
    """Ask an image, without network or GPU, for its packages, engine, imports and options.

    One container is started, read-only, and removed again; a config.json is mounted read-only.
    """

    def command(self, args: ImageProbeArgs, call: CallContext) -> Command:
        """Return ``docker run`` of the image's Python with all probes on standard input."""
        payload = json.dumps(args.model_dump(mode="json", exclude={"image", "python"}))
        start = (args.python, "-") if args.python else ("sh", "-c", FIND_PYTHON, "sh")
        names = (name for name in ANSWERS if name != "options")
        scripts = {name: script_of(f"{name}.py") for name in names}
        inside = Command.of(
            *start,
            call.marker,
            payload,
            stdin=f"{script_of('bundle.py')}\n\nmain({scripts!r})\n",
            timeout_s=args.limit_s + START_S,
        )
        mounts = [Mount(source=_config_file(args.config), target=CONFIG)] if args.config else []
        return probe_command(call, args.image, inside, mounts)

    def parse(self, args: ImageProbeArgs, call: CallContext, result: Result) -> ImageAnswers:
        """Read each answer as its own tool does; what one of them cannot read is an error of it.

        Raises:
            ToolFailed: the image is not there, cannot be run here, or has no such Python.
            BadReply: the container ended without any answer.
        """
        what = f"image_probe of {args.image}"
        result = ran(what, result, args.limit_s + START_S)
        answers = {answer.name: answer for answer in _answers(call, result)}
        if not answers:
            raise _refusal(what, args, result)
        found: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for name in filter(answers.__contains__, ANSWERS):
            try:
                found[name] = _read(answers[name], call)
            except ToolFailed as error:
                errors[name] = str(error)
        if "end" not in answers:
            broke_off = f"the answer of the container broke off ({result.how})"
            errors |= {name: broke_off for name in ANSWERS if name not in answers}
        python = answers["python"].stdout if "python" in answers else ""
        return ImageAnswers(image=args.image, python=python, errors=errors, **found)

    def subjects(self, args: ImageProbeArgs) -> tuple[Subject, ...]:
        """Return the image, and the model whose config it is."""
        model = (model_subject(args.config),) if args.config else ()
        return (image_subject(args.image), *model)


def script_of(name: str) -> str:
    """Return the text of a script of ``tools/probes``."""
    return files("tools").joinpath("probes", name).read_text(encoding="utf-8")


def _config_file(path: str) -> str:
    """Return the file that a model's folder, or the file itself, means."""
    return path if path.endswith(".json") else posixpath.join(path, "config.json")


def _answers(call: CallContext, result: Result) -> Iterator[_Answer]:
    """Yield what the script said, one answer a line; a line that was cut is left out."""
    for line in result.stdout.split("\n"):
        if line.startswith(call.marker + " "):
            try:
                yield _Answer.model_validate_json(line[len(call.marker) + 1 :])
            except ValidationError:
                continue


def _read(answer: _Answer, call: CallContext) -> Observation:
    """Let the tool that asks the same of an environment read an answer.

    Raises:
        ToolFailed: it cannot.
    """
    tool = ANSWERS[answer.name]
    own = {} if answer.name == "options" else {"python": "python3"}
    args = tool.args_type.model_validate({**own, **answer.question})
    observation: Observation = tool.parse(args, call, answer.result)
    return observation


def _refusal(what: str, args: ImageProbeArgs, result: Result) -> ToolFailed:
    """Return what to raise where the container said nothing."""
    said = f" ({result.how}): {result.tail}"
    if "exec format error" in result.stderr.lower():
        return ToolFailed(f"{what}: the image is built for another kind of processor{said}")
    if result.ending is Ending.EXITED and result.code in (126, 127):
        return ToolFailed(f"{what}: {args.python or 'python'} was not found in the image{said}")
    return BadReply(f"{what}: no answer{said}")
