"""Turns what is wrong with given data into one clear line for people."""

from __future__ import annotations

import difflib
import reprlib

from pydantic import BaseModel, ValidationError


def unknown_word(what: str, name: str, known: list[str]) -> str:
    """Say that a word is not known, with the nearest one that is."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known))}"
    return f"unknown {what} `{name}`; {hint}"


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Turn a validation error into one clear line, with the nearest known key for a typo."""
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    spot = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        wrong = str(first["loc"][-1])
        known = sorted(_keys_at(model, first["loc"][:-1]))
        return unknown_word("key", wrong, known).replace(f"`{wrong}`", f"`{spot}`")
    if first["type"] == "missing":
        return f"the key `{spot}` is missing"
    words = first["msg"].removeprefix("Value error, ")
    words = f"{words[:1].lower()}{words[1:]}".replace("tuple", "list")
    return f"{spot}: {words} (got {reprlib.repr(first['input'])})"


def _keys_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> set[str]:
    """Return the known keys of the part of ``model`` that ``loc`` leads to."""
    here: type[BaseModel] = model
    for step in loc:
        info = here.model_fields.get(str(step))
        if info is None:
            continue
        parts = [info.annotation, *getattr(info.annotation, "__args__", ())]
        for part in parts:
            if isinstance(part, type) and issubclass(part, BaseModel):
                here = part
                break
    return set(here.model_fields)
