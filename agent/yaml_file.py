"""Reads a YAML file of a person's into a mapping; what is wrong with it is one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from agent.problems import Problem


class _Loader(yaml.SafeLoader):
    """Reads plain data, and refuses a key that stands twice: one would be passed over."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                problem = f"the key `{name}` stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def read_mapping(path: Path, what: str, see: str, problem: type[Problem]) -> dict[Any, Any]:
    """Read a file that holds one mapping; its keys need not be text.

    Args:
        path: the file.
        what: what it is, for people: ``goal``.
        see: where its keys are described.
        problem: what to raise.

    Raises:
        Problem: of the given type: it cannot be read, or is no YAML mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise problem(f"{path}: cannot read the {what} file: {_reason(error)}") from error
    try:
        data = _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        words = getattr(error, "problem", None) or "not valid YAML"
        if words.endswith("'['") or "character '@'" in words:
            words += "; put quotes around a word with @ or []"
        raise problem(f"{path}{where}: {words}") from error
    if not isinstance(data, dict):
        article = "an" if what[0] in "aeio" else "a"
        raise problem(f"{path}: {article} {what} is a mapping of keys; see {see}")
    return data


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "not UTF-8 text"
