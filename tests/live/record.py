"""Records replies of the small model for the parsers: ``python -m tests.live.record [NAME …]``.

A file in ``tests/dialects/smollm2`` holds one request and what the server answered: status, content
type and the body as it came. A model's words cannot be ordered, so each case says what its reply
has to show, and the first one that does is kept.
"""

from __future__ import annotations

import json
import sys

import httpx

from tests.lab.checkout import ROOT
from tests.lab.environments import NEW
from tests.lab.small_model import Served, served
from tests.live.replies import Reply
from tests.live.wanted import WANTED, Wanted

OUT = ROOT / "tests" / "dialects" / "smollm2"
SERVER = f"transformers serve ({NEW[-1]})"
TRIES = 60
TIMEOUT_S = 120.0


def main(names: list[str]) -> int:
    """Record the named cases, or all; say which ones could not be had."""
    OUT.mkdir(parents=True, exist_ok=True)
    missed: list[str] = []
    for calls in (False, True):
        cases = {name: case for name, case in WANTED.items() if case.calls is calls}
        cases = {name: case for name, case in cases.items() if name in names or not names}
        if not cases:
            continue
        with served(calls=calls) as server:
            missed += [name for name, case in cases.items() if not _kept(name, case, server)]
    if missed:
        sys.stderr.write(f"not shown in {TRIES} replies: {', '.join(missed)}\n")
    return 1 if missed else 0


def _kept(name: str, case: Wanted, server: Served) -> bool:
    for seed in range(TRIES):
        request = {"model": server.model, "messages": case.messages, "max_tokens": 60}
        request |= {"temperature": 0.0 if seed == 0 else 0.8, "seed": seed} | case.request
        # A connection each: the server resets it after a 500.
        url = f"{server.base_url}/chat/completions"
        answer = httpx.post(url, json=request, timeout=TIMEOUT_S)
        reply = Reply(answer.status_code, answer.headers.get("content-type", ""), answer.text)
        if case.shows(reply):
            _write(name, case, request, reply)
            sys.stdout.write(f"{name}: reply {seed + 1}\n")
            return True
    return False


def _write(name: str, case: Wanted, request: dict[str, object], reply: Reply) -> None:
    kept = {
        "about": case.about,
        "server": SERVER,
        "request": request,
        "status": reply.status,
        "content_type": reply.content_type,
        "body": reply.body,
    }
    text = json.dumps(kept, indent=2, ensure_ascii=False) + "\n"
    (OUT / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
