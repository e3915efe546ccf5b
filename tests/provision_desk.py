"""What the tests of making a host ready share: goals, people who answer, and what was said."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.events import ApprovalAsked
from agent.goal import Goal, parse_goal
from agent.session import Session
from tests.lab.bare import Bare
from tests.lab.command import BRINGUP, Done
from tools.host_readiness import Readiness

RECORDED = Path(__file__).parent / "parsers" / "host_readiness"


def provision(user: str, *parts: str, **more: Any) -> Goal:
    """Return the goal of making a lab's machine ready, as one of its users."""
    data = {"kind": "provision", "hosts": [user], "provide": list(parts), **more}
    return parse_goal(data, base=Path("/"), where="test")


@dataclass
class Answers:
    """A person who says yes, but for what ``no`` finds in a title; remembers what was asked."""

    no: str = "nothing is refused"
    titles: list[str] = field(default_factory=list)

    def __call__(self, asked: ApprovalAsked) -> Any:
        """Answer one question."""
        self.titles.append(asked.title)
        refused = self.no in asked.title
        return {"answer": "no", "note": "not on this host"} if refused else {"answer": "yes"}


def yes_unless_by_hand(asked: ApprovalAsked) -> Any:
    """Say yes to what bringup does, and nothing to what a person has to do."""
    return None if asked.title.startswith("needs operator") else {"answer": "yes"}


def report_of(session: Session) -> dict[str, Any]:
    """Return a run's report."""
    ended = session.run.view.ended
    assert ended is not None, "the run has not ended"
    return {"outcome": str(ended.outcome), **ended.report}


def changed(session: Session) -> list[str]:
    """Return the tools of the changes that were made, in order."""
    return [record.call.tool for record in session.run.view.changes]


def recorded(name: str, **more: Any) -> Readiness:
    """Return what was seen of a real host, with some of it replaced."""
    case = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return Readiness.model_validate({**case["observation"], **more})


def command(host: Bare, home: Path) -> Callable[..., Done]:
    """Return a function that runs ``bringup WORDS`` as on a terminal-less desk beside the host."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    env = {**names, "HOME": str(home), "BRINGUP_SSH_CONFIG": str(host.config)}

    def run(*words: str) -> Done:
        ran = subprocess.run(
            [BRINGUP, *words],
            env=env,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Done(ran.returncode, ran.stdout, ran.stderr)

    return run
