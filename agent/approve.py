"""Takes a person's answers in: a mapping of approval ids to words, each used once."""

from __future__ import annotations

from typing import Any

from agent.events import ApprovalAnswered
from agent.problems import Problem
from agent.run import Run


class BadAnswer(Problem):
    """The answer is to no open question, or is none of its choices."""


def heed(run: Run, answers: dict[str, Any]) -> None:
    """Record answers to open approvals.

    Args:
        run: the run.
        answers: approval id to ``yes``, ``no``, ``stop`` or a choice; or to a mapping with
            ``answer``, ``by`` (``person``, ``policy`` or ``flag``) and ``note``.

    Raises:
        BadAnswer: an id is not open, or the word is none of the choices.
    """
    pending = {item.approval_id: item for item in run.view.pending_approvals}
    rows: list[ApprovalAnswered] = []
    for approval_id, given in answers.items():
        if approval_id not in pending:
            raise BadAnswer(f"{approval_id} is not waiting for an answer")
        fields = {"answer": given} if isinstance(given, str) else dict(given)
        choices = (*pending[approval_id].choices, "stop")
        if fields.get("answer") not in choices:
            said = fields.get("answer") or "no answer"
            raise BadAnswer(f"{approval_id}: {said}: answer one of {', '.join(choices)}")
        rows.append(
            ApprovalAnswered.model_validate({"approval_id": approval_id, "by": "person"} | fields)
        )
    run.record(*rows)
