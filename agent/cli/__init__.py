"""The command line: one module a verb.

The table below is all that ``bringup --help`` needs, so help costs no heavier import than Python's
own start. A verb's module is imported when the verb is called.
"""

from __future__ import annotations

import sys

from agent.cli import output

VERBS: dict[str, tuple[str, str]] = {
    "deploy": ("Runs", "bring a goal's server up, and prove it"),
    "provision": ("Runs", "make a bare host ready: Python, Docker, GPUs, limits"),
    "demo": ("Runs", "do the main job here, on a small true model"),
    "resume": ("Runs", "go on with a run that was parked or broke off"),
    "approve": ("Runs", "answer what a parked run asks, and go on"),
    "stop": ("Runs", "stop what a run left running"),
    "undo": ("Runs", "take back what a run has done to a host"),
    "clean": ("Runs", "remove what runs have left on a host"),
    "verify": ("Runs", "run a finished run's checks again, without a brain"),
    "runs": ("Looking back", "list the runs"),
    "show": ("Looking back", "show a run or a transcript as a timeline"),
    "replay": ("Looking back", "play transcripts again offline and compare"),
    "doctor": ("Questions", "what machines are, what is wrong there, and what to do"),
    "copy": ("Files", "copy files to, from or between hosts; what broke off goes on"),
}
"""Every verb: its group and what it does, in one line."""

USAGE = "Usage: bringup VERB [OPTIONS] ...    (bringup VERB --help shows an example)"
EXIT_CODES = (
    "Exit codes of runs: 0 ready, 1 not reached, 2 wrong usage or input, 3 parked,\n"
    "4 limit, 5 unreachable, 130 interrupted."
)
WRONG_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell shows for a program that was ended since nobody reads its output."""


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    output.steady()
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        output.say("bringup: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    finally:
        output.settle()


def _main(words: list[str]) -> int:
    verb = words[0] if words else ""
    if verb in VERBS:
        from agent.cli.shell import call

        return call(verb, words[1:])
    if verb in {"", "-h", "--help", "help"}:
        return _page(help_text(), 0 if words else WRONG_INPUT)
    if verb in {"-V", "--version", "version"}:
        from importlib.metadata import version

        return _page(f"bringup {version('bringup')}", 0)
    return output.complain(_unknown(verb), as_json="--json" in words, code=WRONG_INPUT)


def help_text() -> str:
    """Return the page that ``bringup --help`` prints."""
    lines = ["Brings up LLM servers on machines you name, and proves that they are up.", "", USAGE]
    group = ""
    for name, (its_group, says) in VERBS.items():
        if its_group != group:
            lines += ["", f"{its_group}:"]
            group = its_group
        lines.append(f"  {name:<9} {says}")
    return "\n".join([*lines, "", EXIT_CODES])


def _page(text: str, code: int) -> int:
    try:
        output.write(f"{text}\n")
    except output.CannotWrite as problem:
        return output.complain(str(problem), as_json=False, code=WRONG_INPUT)
    return code


def _unknown(word: str) -> str:
    import difflib

    near = difflib.get_close_matches(word, VERBS, n=1, cutoff=0.5)
    kind = "option" if word.startswith("-") else "verb"
    hint = f"did you mean `{near[0]}`?" if near else "`bringup --help` lists the verbs"
    return f"unknown {kind} `{word}`; {hint}"
