"""What of a process's command is shown: words that say what runs, never a value of any kind.

Secrets come in command lines under names that nobody can list, so nothing is left out by its looks;
what is shown is listed here, and all else is an ellipsis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_READ = 400
MOST_SHOWN = 120
HIDDEN = "…"

_SAID = re.compile(r"\[[A-Za-z ]{1,40}\]")
"""What NVIDIA's driver says in place of a name."""
_PLAIN = re.compile(r"(?!-)[\w./+:-]{1,100}")
_NUMBER = re.compile(r"\d{1,9}")
_FILE = re.compile(r"(?!-)[\w./+:-]{1,100}\.(?:gguf|jar)")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]{0,8}")
_RUNS_FILES = re.compile(r"node|ruby|perl|(?:ba|da|k|z)?sh")
_QUIET = re.compile(r"-[bBEIqsSuO]{1,8}")
"""Switches of Python that come before its script, and have no value."""
_SERVERS = ("vllm", "sglang", "trtllm-serve")
"""Programs whose word after ``serve`` is the model."""
_NAMES = (
    *("--model", "--model-path", "--model-name", "--model-id", "--served-model-name"),
    *("--tokenizer", "--hf-repo"),
)
_NUMBERS = (
    *("--port", "--tensor-parallel-size", "--tp-size", "--tp", "--pipeline-parallel-size"),
    *("--pp-size", "--data-parallel-size", "--dp-size", "--max-model-len", "--context-length"),
    *("--max-tokens", "--ctx-size"),
)
_VALUES = {
    **dict.fromkeys(_NAMES, _PLAIN),
    **dict.fromkeys(_NUMBERS, _NUMBER),
    **dict.fromkeys(("-m", "-jar"), _FILE),
}
"""Options that are shown, and what their values have to look like."""


def plain_words(command: str) -> str:
    """Return a command for people: its program, script, model and port, and little else."""
    start = command[:MOST_READ]
    if _SAID.fullmatch(start):
        return start
    words = start.split()
    after = _head(words)
    shown = [word if _is_head(word) else HIDDEN for word in words[:after]]
    shown += [*_options(words[after:]), *([HIDDEN] if len(command) > MOST_READ else [])]
    text = " ".join(
        word for n, word in enumerate(shown) if word != HIDDEN or shown[n - 1 : n] != [HIDDEN]
    )
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}{HIDDEN}"


def _is_head(word: str) -> bool:
    return bool(_PLAIN.fullmatch(word) or _QUIET.fullmatch(word) or word == "-m")


def _head(words: list[str]) -> int:
    """Return how many words say what runs: program, script or module, ``serve`` and a model."""
    if not words or not _PLAIN.fullmatch(words[0]):
        return 0
    end = 1
    if _RUNS_FILES.fullmatch(_name(words[0])):
        end += _plain(words, end)
    elif _PYTHON.fullmatch(_name(words[0])):
        while end < len(words) and _QUIET.fullmatch(words[end]):
            end += 1
        end += 2 if words[end : end + 1] == ["-m"] else _plain(words, end)
    if words[end : end + 1] in (["serve"], ["runner"]):
        end += 1 + (_plain(words, end + 1) if _name(words[end - 1]) in _SERVERS else 0)
    return end


def _plain(words: list[str], place: int) -> int:
    """Return 1 where a word at that place is no option, else 0."""
    return int(place < len(words) and not words[place].startswith("-"))


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _options(words: list[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        option, mark, value = word.partition("=")
        form = _VALUES.get(option.replace("_", "-"))
        if form is None:
            yield HIDDEN
            continue
        value = value if mark else next(rest, "")
        yield option + (mark or " ") + (value if form.fullmatch(value) else HIDDEN)
