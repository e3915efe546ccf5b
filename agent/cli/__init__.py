"""The command line: one module a verb.

The table below is all that ``bringup --help`` needs, so help costs no heavier import than Python's
own start. A verb's module is imported when the verb is called.
"""

from __future__ import annotations

import sys

VERBS: dict[str, tuple[str, str]] = {
    "deploy": ("Runs", "bring a goal's server up, and prove it"),
    "demo": ("Runs", "do the main job here, on a small true model"),
    "resume": ("Runs", "go on with a run that was parked or broke off"),
    "approve": ("Runs", "answer what a parked run asks, and go on"),
    "stop": ("Runs", "stop what a run left running"),
    "verify": ("Runs", "run a finished run's checks again, without a brain"),
    "runs": ("Looking back", "list the runs"),
    "show": ("Looking back", "show a run or a transcript as a timeline"),
    "replay": ("Looking back", "play transcripts again offline and compare"),
}
"""Every verb: its group and what it does, in one line."""

USAGE = "Usage: bringup VERB [OPTIONS] …    (bringup VERB --help says more, with an example)"
EXIT_CODES = (
    "Exit codes of runs: 0 ready, 1 not reached, 2 wrong usage or input, 3 parked,\n"
    "4 limit, 5 unreachable, 130 interrupted."
)


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in {"-h", "--help", "help"}:
        _print(help_text())
        return 0 if words else 2
    if words[0] in {"-V", "--version", "version"}:
        from importlib.metadata import version

        _print(f"bringup {version('bringup')}")
        return 0
    if words[0] not in VERBS:
        _print(_unknown(words[0]), error=True)
        return 2
    from agent.cli.shell import call

    return call(words[0], words[1:])


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


def _unknown(word: str) -> str:
    import difflib

    near = difflib.get_close_matches(word, VERBS, n=1, cutoff=0.5)
    kind = "option" if word.startswith("-") else "verb"
    hint = f"did you mean `{near[0]}`?" if near else "`bringup --help` lists the verbs."
    return f"bringup: unknown {kind} `{word}`; {hint}"


def _print(text: str, *, error: bool = False) -> None:
    stream = sys.stderr if error else sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
