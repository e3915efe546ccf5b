"""A target that answers at once: an environment that was recorded, and logs without end."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tools.command import Command, Ending, OnOutput, Result

PARSERS = Path(__file__).parent.parent / "parsers"
PROBES = Path(__file__).parent.parent.parent / "tools" / "probes"
RECORDED = {
    "host.py": "host_facts/linux_container.json",
    "environment.py": "python_environment/transformers4_with_torch.json",
    "port.py": "port_owner/free.json",
    "config.py": "config_probe/transformers4_does_not_know_it.json",
}
"""What the probes found on a real machine: a release that is too old, so the run is stuck."""
PIECE_BYTES = 4000
"""About how much text one look brings."""
PIECES = 512
"""So many different ones take turns."""
VOCABULARY = (
    "worker rank engine loaded shard weights memory profile graph capture batch tokens cache blocks"
    " attention backend model runner executor init done in seconds request finished prompt"
)


def log_lines(seed: int) -> list[str]:
    """Return about ``PIECE_BYTES`` of a server's log, the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311
    vocabulary = VOCABULARY.split()
    lines: list[str] = []
    while sum(map(len, lines)) < PIECE_BYTES:
        words = " ".join(rng.choices(vocabulary, k=8))
        clock = f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
        lines.append(
            f"(EngineCore pid={rng.randrange(10**5)}) {rng.choice('IWE')} 11-30 {clock}"
            f" [{rng.choice(vocabulary)}.py:{rng.randrange(999)}] {words} {rng.random():.4f}"
        )
    return lines


class Instant:
    """Answers probes from recordings, and ``read_file`` and ``grep`` with pieces of a log."""

    name = "instant"

    def __init__(self) -> None:
        self.payload_bytes = 0
        """How much text was asked for and given."""
        self._answers = {
            (PROBES / script).read_text(encoding="utf-8"): _recorded(case)
            for script, case in RECORDED.items()
        }
        self._logs = [log_lines(seed) for seed in range(PIECES)]
        self._looks = 0

    def run(self, command: Command, on_output: OnOutput | None = None) -> Result:
        """Answer at once."""
        recorded = self._answers.get(command.stdin or "")
        if recorded is not None:
            text = f"{command.argv[2]} {recorded}\n"
        else:
            lines = self._logs[self._looks % PIECES]
            self._looks += 1
            self.payload_bytes += sum(map(len, lines)) + len(lines)
            greps = command.argv[0] == "grep"
            text = _matches(command, lines) if greps else _piece(command, lines)
        return Result(Ending.EXITED, code=0, stdout=text)

    def close(self) -> None:
        """Nothing is held."""


def _recorded(case: str) -> str:
    """Return a recorded answer without its marker."""
    data = json.loads((PARSERS / case).read_text(encoding="utf-8"))
    text: str = data["result"]["stdout"]
    return text.rpartition(data["marker"])[2].strip()


def _matches(command: Command, lines: list[str]) -> str:
    path = command.argv[-1]
    return "".join(f"{path}\0{number}:{line}\n" for number, line in enumerate(lines, 1))


def _piece(command: Command, lines: list[str]) -> str:
    asked = json.loads(command.argv[3])
    text = "\n".join(lines)
    piece = {
        "text": text,
        "size_bytes": 10**9,
        "offset_bytes": asked["offset"],
        "end_bytes": asked["offset"] + len(text),
        "left_out_bytes": 10**9 - len(text),
        "real_path": asked["path"],
    }
    return f"{command.argv[2]} {json.dumps({'piece': piece})}\n"
