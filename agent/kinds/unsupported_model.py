"""unsupported-model: no change of versions helps: the model is not known or not readable."""

from __future__ import annotations

from agent.kinds.base import Case, Hypothesis
from agent.kinds.version_pin import floor_of, version_of


def explain(case: Case) -> Hypothesis:
    """Say so; it ranks below a version pin as long as a release is known to have the model."""
    package = case.params.get("package", "")
    floor = floor_of(case, package)[0] if package else None
    if floor is not None:
        installed = case.words()["installed"]
        have = version_of(installed)
        if have is None or have < floor:
            older = f"{package} {installed} is older than {floor}, which knows the model type"
            return case.hypothesis(score=0.05, cause=older, advice="")
        return case.hypothesis(
            score=0.2,
            cause=f"{package} {installed} should know the model type "
            f"{case.params.get('model_type')} and does not",
            advice="Reinstall it: its files and its version do not agree.",
        )
    return case.hypothesis()
