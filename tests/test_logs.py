"""What is read out of logs and help texts."""

from __future__ import annotations

import pytest

from tools.help_text import parse_help
from tools.logs import earliest_error, plain, progress


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", ""),
        ("INFO all is well, no errors\n", ""),
        ("usage: x\nx: error: unrecognized: --foo", "x: error: unrecognized: --foo"),
        (
            "Try '--help'\n\nError: No such option: --torch_dtype\n",
            "Error: No such option: --torch_dtype",
        ),
        (
            "╭─ Error ──────────────╮\n│ No such option: --x  │\n╰──────────────────────╯",
            "No such option: --x",
        ),
        (
            "ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n"
            '  File "a.py", line 1, in f\n    g()\n    ^^^\nKeyError: 1\n\n'
            "The above exception was the direct cause of the following exception:\n\n"
            'Traceback (most recent call last):\n  File "b"\nValueError: 2\n',
            "KeyError: 1",
        ),
        (
            "(Core pid=7) ERROR 01-02 03:04:05 [core.py:9] Traceback (most recent call last):\n"
            '(Core pid=7) ERROR 01-02 03:04:06 [core.py:9]   File "a.py", line 1, in f\n'
            "(Core pid=7) ERROR 01-02 03:04:06 [core.py:9] RuntimeError: CUDA error: no kernel\n",
            "RuntimeError: CUDA error: no kernel",
        ),
        ("Traceback (most recent call last):\n  File", "Traceback (most recent call last):"),
        (
            "torch.OutOfMemoryError: CUDA out of memory.\n",
            "torch.OutOfMemoryError: CUDA out of memory.",
        ),
        ("a\n\x1b[31mERROR\x1b[0m 12:00 boom\nERROR late\n", "ERROR 12:00 boom"),
    ],
)
def test_earliest_error(text: str, error: str) -> None:
    assert earliest_error(text) == error


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("", ""),
        ("INFO 2025/01/02 HTTP/1.1 up\n", ""),
        (
            "\rLoading weights:   0%|   | 0/56\rLoading weights:  45%|██ | 25/56",
            "Loading weights:  45%",
        ),
        ("Capturing graphs 3/35\nINFO x\n", "Capturing graphs 3/35"),
        ("Shards:  50% Completed | 2/4 [00:01]\r\nnext\n", "Shards:  50%"),
    ],
)
def test_progress(text: str, last: str) -> None:
    assert progress(text) == last


def test_plain_text_is_what_a_terminal_would_end_up_with() -> None:
    assert plain("a\r\n\x1b[1mb\x1b[0m\n1\r22\r\n\x1b]0;title\x07c\0\n\n") == "a\nb\n22\nc"


OLD_HELP = """usage: tool <command> [<args>] serve [-h] [--batching [BATCHING]]
                                 [--dtype {auto,float32}] --must MUST
                                 model_tag [extra ...]

options:
  -h, --help            show this help message and exit
  --continuous_batching [BATCHING], --continuous-batching [BATCHING]
                        Whether to use
                        --attn_implementation=flash, in which case run `pip
                        --no-build-isolation`. (default: False)
  --dtype {auto,float32}
                        The type.
"""
BOX_HELP = """
 Usage: tool serve [OPTIONS] {small,large} [FORCE_MODEL] COMMAND [ARGS]...

╭─ Options ──────────────────────────────────────────────╮
│ *  --name     -n               TEXT  Not --this.       │
│    --cb           --no-cb            Use it.           │
│    --help                            Show this.        │
╰────────────────────────────────────────────────────────╯
"""


def test_help_of_several_parsers() -> None:
    assert parse_help(OLD_HELP) == (
        ["-h", "--help", "--continuous_batching", "--continuous-batching", "--dtype"],
        ["model_tag", "extra"],
    )
    assert parse_help(BOX_HELP) == (
        ["--name", "-n", "--cb", "--no-cb", "--help"],
        ["{small,large}", "FORCE_MODEL", "COMMAND", "ARGS"],
    )
    assert parse_help("nothing at all") == ([], [])
