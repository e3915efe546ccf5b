"""Writes the table of modules in ``docs/architecture.md`` from the modules' own docstrings.

``python -m agent.modules_doc docs/architecture.md`` brings the page up to date.
"""

from __future__ import annotations

import ast
import re
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

MARK = "<!-- Below this line: written by `python -m agent.modules_doc docs/architecture.md` -->"
LAYERS = ("agent", "tools")
SENT = {"tools/probes", "tools/scripts"}
"""Folders of what is sent to a target: no modules of ours."""


def reference() -> str:
    """Return a table for each layer: its modules and one sentence each."""
    parts = []
    for layer in LAYERS:
        rows = [f"| `{name}` | {sentence} |" for name, sentence in modules(files(layer), layer)]
        parts.append("\n".join([f"| `{layer}/` | its one sentence |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def page(text: str) -> str:
    """Return a page with the part below the mark brought up to date."""
    return f"{text.partition(MARK)[0]}{MARK}\n\n{reference()}"


def modules(folder: Traversable, at: str) -> list[tuple[str, str]]:
    """Return each module below a folder, by its place in its layer, with its first sentence."""
    found: list[tuple[str, str]] = []
    for item in sorted(folder.iterdir(), key=lambda entry: (entry.is_dir(), entry.name)):
        place = f"{at}/{item.name}"
        if item.is_dir() and place not in SENT and item.name != "__pycache__":
            found += modules(item, place)
        elif item.name.endswith(".py"):
            sentence = first_sentence(item.read_text(encoding="utf-8"))
            name = place.partition("/")[2]
            found.append((name.removesuffix("__init__.py") or "__init__.py", sentence))
    return found


def first_sentence(source: str) -> str:
    """Return the first sentence of a module's docstring, on one line."""
    text = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0]
    sentence = re.split(r"(?<=[.?])\s", text, maxsplit=1)[0]
    return " ".join(sentence.split()).replace("``", "`").replace("|", "\\|")


def main() -> None:
    """Bring the page named on the command line up to date."""
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
