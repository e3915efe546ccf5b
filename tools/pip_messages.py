"""What pip says, read: which packages came, which conflict, and why it refused."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import takewhile

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

MAX_LINE = 400
MAX_CAUSES = 12


class PipErrorKind(StrEnum):
    """Why pip said no."""

    NONE = "none"
    REQUIRES_PYTHON = "requires_python"
    """Versions that would do exist, for another Python."""
    NO_MATCH = "no_match"
    """There is no such version, or no such package."""
    CONFLICT = "conflict"
    """The requirements cannot be had together."""
    NO_SPACE = "no_space"
    NETWORK = "network"
    """The index could not be asked."""
    READ_ONLY = "read_only"
    NO_PIP = "no_pip"
    OLD_PIP = "old_pip"
    """This pip cannot report what it would do (that needs 22.2)."""
    OTHER = "other"


_SIGNS: tuple[tuple[PipErrorKind, str], ...] = (
    (PipErrorKind.NO_PIP, r"No module named '?pip\b"),
    (PipErrorKind.OLD_PIP, r"no such option: --(dry-run|report)"),
    (PipErrorKind.NO_SPACE, r"No space left on device"),
    (PipErrorKind.READ_ONLY, r"Read-only file system"),
    (PipErrorKind.CONFLICT, r"ResolutionImpossible|have conflicting dependencies"),
    (PipErrorKind.REQUIRES_PYTHON, r"requires? a different Python"),
    (
        PipErrorKind.NETWORK,
        r"Retrying \(Retry\(|ConnectionError|ConnectTimeout|Could not fetch URL|name resolution",
    ),
    (PipErrorKind.NO_MATCH, r"No matching distribution found"),
)
_NOT_FOUND = re.compile(r"satisfies the requirement (.+?) \(from ")
_OTHER_PYTHON = re.compile(r"(\S+) Requires-Python ([^;\n]+)")
_WRONG_PYTHON = re.compile(
    r"requires a different Python: \S+ not in '([^']+)'"
    r"|require a different Python\. \S+ not in:\s*'([^']+)'"
)
_VERSIONS = re.compile(r"\(from versions: (?:[^()]*, )?((?:[^(), ]+, ){4}[^(), ]+)\)")
_CONFLICT_LINE = re.compile(
    r"^\S+ \S+ (?:requires .+, (?:which is not installed|but you have .+ which is incompatible)"
    r"|has requirement .+, but you have .+|is not supported on this platform)\.?$"
)
_INSTALLED = re.compile(r"^Successfully installed (.+)$", re.MULTILINE)
_CAUSE = "The conflict is caused by:"
_RETRY = "Retrying (Retry("
_PIP_ERROR = re.compile(
    r"(?!ERROR: Ignored the following)"  # `required_python` says what matters of that list
    r"(ERROR|error|CRITICAL): |no such option: |ensurepip is disabled|.*: No module named pip$"
)
_PYTHON_ERROR = re.compile(r"[\w.]*Error: |.*\[Errno ")


def error_kind(text: str) -> PipErrorKind:
    """Say why pip failed, from all that it printed."""
    found = (kind for kind, sign in _SIGNS if re.search(sign, text))
    kind = next(found, PipErrorKind.OTHER)
    if kind in (PipErrorKind.NO_MATCH, PipErrorKind.NETWORK) and required_python(text):
        return PipErrorKind.REQUIRES_PYTHON
    return kind


def required_python(text: str) -> str:
    """Return the Python that the newest wanted version asks for, or an empty text.

    pip lists every version that it skipped because of its Python; only those that the requirement
    would have taken say anything about why it failed.
    """
    direct = _WRONG_PYTHON.search(text)
    if direct:
        return direct.group(1) or direct.group(2)
    wanted = _NOT_FOUND.search(text)
    if not wanted:
        return ""
    best: tuple[Version, str] | None = None
    for version, specifier in _OTHER_PYTHON.findall(text):
        if _takes(wanted.group(1), version) and (best is None or Version(version) > best[0]):
            best = (Version(version), specifier)
    return best[1] if best else ""


def _takes(requirement: str, version: str) -> bool:
    try:
        specifier = Requirement(requirement).specifier
        prereleases = any(Version(one.version).is_prerelease for one in specifier)
        return specifier.contains(Version(version), prereleases=prereleases)
    except (InvalidRequirement, InvalidVersion):
        return False


def decisive_lines(text: str) -> str:
    """Return the lines that say why pip failed, without its notices and long lists."""
    lines = text.splitlines()
    python = required_python(text)
    kept = [f"the wanted version requires Python {python}"] if python else []
    kept += [_shortened(line) for line in lines if _PIP_ERROR.match(line)]
    kept += _cause_of_conflict(lines)
    if not kept:
        kept = [line[:MAX_LINE] for line in lines if _PYTHON_ERROR.match(line)]
    if not kept:
        kept = [line[:MAX_LINE] for line in lines if line.strip()][-5:]
    retry = [line[:MAX_LINE] for line in lines if _RETRY in line][:1]
    return "\n".join(dict.fromkeys(kept + retry))


def _cause_of_conflict(lines: list[str]) -> list[str]:
    """Return pip's explanation of a conflict: one line, then indented ones."""
    if _CAUSE not in lines:
        return []
    after = lines[lines.index(_CAUSE) + 1 :]
    return [_CAUSE, *takewhile(lambda line: line.startswith(" "), after[:MAX_CAUSES])]


def _shortened(line: str) -> str:
    return _VERSIONS.sub(r"(newest: \1)", line)[:MAX_LINE]


def conflict_lines(text: str) -> list[str]:
    """Return pip's sentences about installed packages that do not fit each other."""
    return [line.strip() for line in text.splitlines() if _CONFLICT_LINE.match(line.strip())]


def installed_packages(stdout: str) -> list[str]:
    """Return what pip says it installed, as ``name==version`` with normalized names."""
    words = " ".join(_INSTALLED.findall(stdout)).split()
    pairs = (word.rpartition("-") for word in words)
    return [f"{canonicalize_name(name)}=={version}" for name, _, version in pairs]
