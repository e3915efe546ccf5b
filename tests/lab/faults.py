"""Faults that no playbook knows, made in real environments, for a model to find.

Each is a function from an empty folder to a goal. What is broken is always a file of the folder's
own: environments are cloned by hard links, so a file is replaced and never written into.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.demo.checkpoint import write_checkpoint
from agent.events import ApprovalAsked
from agent.goal import Goal
from tests.lab.environments import NEW, OLD, clone, environment
from tests.lab.runs import serve_goal


def _site_packages(venv: Path) -> Path:
    return next((venv / "lib").glob("python3*/site-packages"))


def _replace(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def wrong_library(folder: Path) -> Goal:
    """A package's compiled module was replaced by another package's."""
    venv = clone(environment(*NEW), folder / "env")
    packages = _site_packages(venv)
    (wrong,) = (packages / "safetensors").glob("*.so")
    (right,) = (packages / "tokenizers").glob("*.so")
    _replace(right, wrong.read_bytes())
    return serve_goal(folder, venv)


def sitecustomize(folder: Path) -> Goal:
    """Something that Python imports by itself refuses one of the engine's modules."""
    venv = clone(environment(*NEW), folder / "env")
    _replace(
        _site_packages(venv) / "sitecustomize.py",
        b"""import sys


class _Approved:
    def find_spec(self, name, path=None, target=None):
        if name == "tokenizers":
            raise ImportError("tokenizers is not on the list of approved modules")
        return None


sys.meta_path.insert(0, _Approved())
""",
    )
    return serve_goal(folder, venv)


def poisoned_path(folder: Path) -> Goal:
    """A forgotten folder comes first on the module path, with an old copy of a package."""
    venv = clone(environment(*NEW), folder / "env")
    old = folder / "tools" / "huggingface_hub"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text('__version__ = "0.4.0"\n\n\ndef login():\n    pass\n')
    line = f"import sys; sys.path.insert(0, {str(old.parent)!r})\n"
    _replace(_site_packages(venv) / "zz_team_tools.pth", line.encode())
    return serve_goal(folder, venv)


def pip_constraint(folder: Path) -> Goal:
    """The environment is too old, and its pip keeps it so: a file of constraints says why."""
    venv = clone(environment(*OLD), folder / "env")
    rules = folder / "team-constraints.txt"
    rules.write_text("# frozen for the 2025 release\ntransformers<5\n")
    (venv / "pip.conf").write_text(f"[global]\nconstraint = {rules}\n")
    return serve_goal(folder, venv)


_LAUNCH = """\
import configparser
import pathlib
import subprocess
import sys

settings = configparser.ConfigParser()
settings.read(pathlib.Path(__file__).with_name("launch.ini"))
host = settings["server"]["host"]
program = str(pathlib.Path(sys.executable).with_name("transformers"))
words = [program, "serve", sys.argv[1], "--host", host, "--port", sys.argv[2], "--device", "cpu"]
sys.exit(subprocess.call(words))
"""


def wrong_address(folder: Path) -> Goal:
    """The server starts well, and listens where nobody asks it."""
    venv = clone(environment(*NEW), folder / "env")
    (folder / "launch.py").write_text(_LAUNCH)
    (folder / "launch.ini").write_text("[server]\nhost = 127.0.0.2\n")
    words = ["{python}", str(folder / "launch.py"), "{model}", "{port}"]
    candidate = {"engine": "custom", "serve": words, "modules": ["transformers", "torch"]}
    return serve_goal(folder, venv, candidate=candidate, options={})


def refused(folder: Path) -> Goal:
    """Nothing is broken, but the person does not want the server on the goal's own port."""
    goal = serve_goal(folder, clone(environment(*NEW), folder / "env"))
    spare = f"{goal.port + 1}-{goal.port + 5}"
    return goal.model_copy(update={"allow": goal.allow.model_copy(update={"ports": (spare,)})})


def not_there(goal: Goal, asked: ApprovalAsked) -> dict[str, Any]:
    """Say yes to everything but the goal's own port."""
    if any(str(item) == f"port {goal.port}" for item in asked.touches):
        note = f"something else will need port {goal.port}; take another one that the goal allows"
        return {"answer": "no", "note": note}
    return YES


def impossible(folder: Path) -> Goal:
    """A model of a type that no release of anything knows."""
    venv = clone(environment(*NEW), folder / "env")
    config = folder / "model" / "config.json"
    data = json.loads(config.read_text())
    data |= {"model_type": "qwen9_next", "architectures": ["Qwen9NextForCausalLM"]}
    config.write_text(json.dumps(data))
    return serve_goal(folder, venv)


YES = {"answer": "yes"}
Person = Callable[[Goal, ApprovalAsked], dict[str, Any]]
"""Answers what a run asks."""


def agrees(goal: Goal, asked: ApprovalAsked) -> dict[str, Any]:
    """Say yes to everything."""
    return YES


FAULTS: Mapping[str, tuple[Callable[[Path], Goal], Person]] = {
    "wrong_library": (wrong_library, agrees),
    "sitecustomize": (sitecustomize, agrees),
    "poisoned_path": (poisoned_path, agrees),
    "pip_constraint": (pip_constraint, agrees),
    "wrong_address": (wrong_address, agrees),
    "refused": (refused, not_there),
    "impossible": (impossible, agrees),
}
"""Name to how its place is made, and who is asked."""


def made(name: str, folder: Path) -> tuple[Goal, Person]:
    """Make a fault's place in an empty folder; return its goal, and who is asked."""
    make, person = FAULTS[name]
    write_checkpoint(folder / "model")
    goal = make(folder)
    limits = goal.limits.model_copy(update={"minutes": 30.0})
    return goal.model_copy(update={"limits": limits}), person
