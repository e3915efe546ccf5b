"""missing-module: something cannot be imported because nothing there provides it."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement

from agent import knowledge
from agent.kinds.base import Case, FixPlan, Hypothesis
from agent.kinds.resolve import solve
from agent.values import ToolCall
from tools.installation import InstallPip


def explain(case: Case) -> Hypothesis:
    """Name the distribution that provides the module and ask the resolver for it.

    Only a distribution that a playbook, the goal or the engine names is ever proposed: a module's
    name is no proof of who publishes under it.
    """
    module = case.params["module"]
    if module == "pip" and not case.site.is_image:
        return _pip(case)
    requirement = requirement_for(case, module)
    if requirement is None:
        return case.hypothesis(
            score=0.6,
            advice=f"No playbook says which distribution provides `{module}`; add it to the "
            "candidate's `requirements` if you know.",
        )
    solution = solve(case, (requirement,), f"the environment needs {requirement}")
    cause = case.hypothesis().cause
    return case.hypothesis(
        cause=f"{cause}; {solution.obstacle}" if solution.obstacle else cause,
        probe=solution.probe,
        fix=solution.fix,
        advice=solution.advice,
        evidence=(*case.failure.evidence, *solution.evidence),
        subject=case.site.environment,
    )


def requirement_for(case: Case, module: str) -> str | None:
    """Return the requirement that brings ``module``: by the goal, else by a playbook."""
    entry = knowledge.load().distribution_of(module)
    name = entry.distribution if entry else None
    for text in case.site.candidate.requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.name in {name, module.partition(".")[0]}:
            return text
    return name


def _pip(case: Case) -> Hypothesis:
    seen = case.environment
    subject = case.site.environment
    if seen is not None and not seen.ensurepip:
        return case.hypothesis(
            subject=subject,
            advice="Its Python has no ensurepip either (on Debian: apt install python3-venv); "
            "put pip there, then run again.",
        )
    text = "install the pip that comes with this Python (ensurepip)"
    call = ToolCall(
        tool=InstallPip().name,
        args={"python": case.site.python},
        target=case.site.target,
        why=text,
    )
    return case.hypothesis(fix=FixPlan((call,), text), subject=subject)
