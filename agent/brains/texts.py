"""The prompts, as they stand in ``prompts/model/``; code only fills names in."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template

import yaml

_FOLDER = files("prompts") / "model"


@cache
def template(name: str) -> Template:
    """Return a prompt's template: ``$name`` is filled in by plain replacement."""
    return Template((_FOLDER / f"{name}.md").read_text(encoding="utf-8"))


@cache
def _texts() -> dict[str, str]:
    data: dict[str, str] = yaml.safe_load((_FOLDER / "texts.yaml").read_text(encoding="utf-8"))
    return data


def text(name: str) -> str:
    """Return one of the short texts."""
    return _texts()[name].strip()
