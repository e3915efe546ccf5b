"""version-pin: what is installed is too old for the model, and another release fits."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from agent import knowledge
from agent.kinds.base import Case, Hypothesis
from agent.kinds.resolve import solve
from tools.autoconfig import ConfigProbe


def explain(case: Case) -> Hypothesis:
    """Find the floor, join it with what others declare, and ask the resolver for the change."""
    package = case.params["package"]
    installed = version_of(case.words()["installed"])
    floor, source = floor_of(case, package)
    if installed is not None and floor is not None and installed >= floor:
        return case.hypothesis(score=0.05, cause=_not_too_old(case, package, installed, floor))
    if installed is None:
        return case.hypothesis(score=0.05)
    wanted = SpecifierSet(f">={floor}" if floor else f">{installed}")
    pinned, owners = (
        _pins_of_image(case, package, wanted) if case.site.is_image else pins_on(case, package)
    )
    if pinned is None:
        return _engine_forbids(case, package, wanted, owners)
    requirement = _requirement(case, package, wanted & pinned)
    reason = f"{package} {wanted} ({source})" + (f", within {owners}" if owners else "")
    solution = solve(case, (requirement,), reason)
    cause = case.hypothesis().cause + (f"; {floor} is the first that does" if floor else "")
    if solution.obstacle:
        return case.hypothesis(
            cause=f"{cause}; {solution.obstacle}",
            advice=solution.advice,
            evidence=(*case.failure.evidence, *solution.evidence),
        )
    return case.hypothesis(
        cause=cause,
        probe=solution.probe,
        fix=solution.fix,
        evidence=(*case.failure.evidence, *solution.evidence),
    )


def floor_of(case: Case, package: str) -> tuple[Version | None, str]:
    """Return the first release that knows the model type, and where that is known from.

    A playbook's entry counts most; the release that wrote the config is a hint; else nothing is
    known.
    """
    model_type = case.params.get("model_type", "")
    entry = knowledge.load().first_release(package, model_type)
    if entry is not None:
        return Version(entry.since), "first release that knows the model type"
    seen, _ = case.view.facts.latest(ConfigProbe, fresh=False)
    hint = version_of(seen.written_by or "") if seen else None
    if hint is not None and hint > (version_of(case.words()["installed"]) or hint):
        return hint, "the release that wrote the config"
    return None, "newer than what is installed"


def pins_on(case: Case, package: str) -> tuple[SpecifierSet, str]:
    """Return what the other installed distributions declare about ``package``, and who they are."""
    merged, owners = SpecifierSet(), []
    for pin in case.environment.pins if case.environment else ():
        if pin.name != package:
            continue
        try:
            requirement = Requirement(pin.requirement)
        except InvalidRequirement:
            continue
        if requirement.specifier:  # the probe has judged markers, with the target's own Python
            merged &= requirement.specifier
            owners.append(f"{pin.by} {pin.by_version}'s {requirement.specifier}")
    return merged, ", ".join(owners)


def _pins_of_image(
    case: Case, package: str, wanted: SpecifierSet
) -> tuple[SpecifierSet | None, str]:
    """Return the engine's own pin, and others' as far as they leave a release; ``None`` for none.

    An image's engine decides: it is what has to run. What other distributions declare is kept
    where it can be; where it cannot, pip will say so and that is judged after the build.
    """
    engine = case.answers.engine if case.answers else None
    own = engine.distribution if engine else ""
    pins = [pin for pin in case.environment.pins if pin.name == package] if case.environment else []
    merged, owners = wanted, []
    for pin in sorted(pins, key=lambda pin: pin.by != own):
        try:
            asked = Requirement(pin.requirement).specifier
        except InvalidRequirement:
            continue
        joined = merged & asked
        if not asked:
            continue
        if has_release(joined):
            merged = joined
            owners.append(f"{pin.by} {pin.by_version}'s {asked}")
        elif pin.by == own:
            return None, f"{pin.by} {pin.by_version} wants {pin.requirement}"
    return merged, ", ".join(owners)


def has_release(specifier: SpecifierSet) -> bool:
    """Tell whether some release could satisfy a specifier, by trying the versions at its edges."""
    edges = [version_of(item.version.removesuffix(".*")) for item in specifier]
    tried = [edge for edge in edges if edge is not None]
    tried += [Version(f"{edge.major}.{edge.minor}.{edge.micro + 1}") for edge in tried]
    return any(specifier.contains(version, prereleases=True) for version in tried)


def _engine_forbids(case: Case, package: str, wanted: SpecifierSet, owner: str) -> Hypothesis:
    """The engine itself pins the package below what the model needs: another release is needed."""
    cause = f"{case.hypothesis().cause}; {owner}, and the model needs {package} {wanted}"
    return case.hypothesis(
        cause=cause, advice="Another release of the engine is needed: name its image in the goal."
    )


def _requirement(case: Case, package: str, specifier: SpecifierSet) -> str:
    """Name the package with the extras that the engine needs."""
    extras = ""
    if case.site.engine.requirement:
        engine = Requirement(case.site.engine.requirement)
        if engine.name == package and engine.extras:
            extras = f"[{','.join(sorted(engine.extras))}]"
    return f"{package}{extras}{_shortest(specifier)}"


def _shortest(specifier: SpecifierSet) -> SpecifierSet:
    """Return an exact pin alone where the set holds one that all the others allow."""
    for item in specifier:
        exact = item.operator == "==" and not item.version.endswith(".*")
        if exact and specifier.contains(item.version, prereleases=True):
            return SpecifierSet(str(item))
    return specifier


def _not_too_old(case: Case, package: str, installed: Version, floor: Version) -> str:
    return f"{package} {installed} is not too old: {floor} is the first that knows the model"


def version_of(text: str) -> Version | None:
    """Return a version, or nothing for text that is none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None
