"""What secrets look like: the forms of a known value in text, and the shapes of unknown ones."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

MIN_LENGTH = 6
"""Shorter values are not taken for secrets: replacing ``1`` or ``root`` would destroy logs."""
_LONGEST_WRAPPED = 512
"""Longer forms (keys of many lines) are looked for as they are, not wrapped by a terminal."""
_SECRET_NAME = re.compile(
    r"TOKENS?(?=$|_)|(?:^|_|API|ACCESS|PRIVATE|SECRET)KEYS?(?=$|_)|SECRET|PASSWORD|PASSWD|PASSPHRASE"
    r"|CREDENTIAL|(?:^|_)PASS(?=$|_)"
)
_PLAIN_VALUE = re.compile(r"(?i)[-+]?\d+(?:\.\d+)?|true|false|disabled?|enabled?|default|required")

Shape = tuple[tuple[str, ...], re.Pattern[str]]


def _shape(hints: tuple[str, ...], pattern: str) -> Shape:
    return hints, re.compile(pattern)


def _token(hint: str, pattern: str) -> Shape:
    return _shape((hint,), rf"(?<![A-Za-z0-9_-])(?P<secret>{pattern})")


_VALUE = r"""(?P<secret>[^\s"'«»$<>\[\]{}\\/,;&*(-][^\s"'«»$<>\\,;&]{5,})"""
_ASSIGNED = r"(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD)"
_BASE64 = r"(?P<secret>[A-Za-z0-9+/]{8,}={0,2})"

FLAG = re.compile(r"--(?:[a-z]+-)*(?:api-key|password|token|secret)")
"""An option whose value, the next word of an argument vector, is a secret."""

SHAPES: tuple[Shape, ...] = (
    _shape(
        ("PRIVATE KEY-----",),
        r"(?s)(?P<secret>-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"
        r".*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z))",
    ),
    _shape(("://",), r"""://(?:[^\s/@:"'<>\\«»]|«secret:[\w.-]+»)*:(?P<secret>[^\s/"'<>\\«»]+)@"""),
    _token("hf_", r"hf_[A-Za-z0-9]{16,}"),
    _token("sk-", r"sk-(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{16,}"),
    _shape(
        ("gho_", "ghp_", "ghs_", "ghu_", "ghr_"),
        r"(?<![A-Za-z0-9_-])(?P<secret>gh[opsur]_[A-Za-z0-9]{16,})",
    ),
    _token("github_pat_", r"github_pat_[A-Za-z0-9_]{16,}"),
    _token("glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
    _token("nvapi-", r"nvapi-[A-Za-z0-9_-]{16,}"),
    _token("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _token("AKIA", r"AKIA[0-9A-Z]{16}"),
    _token("ASIA", r"ASIA[0-9A-Z]{16}"),
    _token("AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _token("eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _shape(
        ("bearer",),
        r"(?i:\bbearer)\s{1,4}(?P<secret>(?=[A-Za-z._~+/=-]*\d|\S{24})[A-Za-z0-9._~+/=-]{8,})",
    ),
    _shape(("basic",), r"""(?i:authorization["'\\]*\s?[:=]\s?["'\\]*basic)\s{1,4}""" + _BASE64),
    _shape(('auth"', "auth\\"), r"""\bauth\\*"\s{0,4}:\s{0,4}\\*\"""" + _BASE64),
    _shape(
        ("TOKEN=", "KEY=", "SECRET=", "PASSWORD=", "PASSWD="),
        rf"(?<![A-Za-z0-9_])(?!(?:EOS|BOS|PAD|UNK|CLS|SEP|MASK)_)[A-Z][A-Z0-9_]{{0,64}}{_ASSIGNED}"
        rf"""=["']?(?!\d+\b){_VALUE}""",
    ),
    _shape(
        ("_TOKEN", "_KEY", "_SECRET", "_PASSW"),
        rf"(?<![A-Za-z0-9_])(?!(?:EOS|BOS|PAD|UNK|CLS|SEP|MASK)_)[A-Z][A-Z0-9_]{{0,64}}_{_ASSIGNED}"
        rf"""(?:\\*["'])?:\s{{1,4}}(?:\\*["'])?(?!\d+\b){_VALUE}""",
    ),
    _shape(
        ("-key", "-password", "-token", "-secret"),
        rf"""(?<![\w-]){FLAG.pattern}(?:=|\s{{1,4}})["']?(?![A-Z_]+\b){_VALUE}""",
    ),
)
"""Hints, one of which ``hints_in`` finds wherever the pattern matches; and the pattern, whose group
``secret`` gets replaced. In order: a pattern sees what the ones before it left."""

_FOLDED = ("bearer", "basic")
"""Hints in any case; all others stand as they are in the text."""
_SIGNS = ("KEY", "TOKEN", "SECRET", "PASSW", "_", "-", "=", '"', "\\", "J", "A")


def _by_sign() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Put the hints together that have a sign in common: one look often tells of them all."""
    found: dict[str, list[str]] = {}
    for hint in (hint for hints, _ in SHAPES for hint in hints if hint not in _FOLDED):
        sign = next((sign for sign in _SIGNS if sign in hint), hint)
        found.setdefault(sign, []).append(hint)
    return tuple((sign, tuple(hints)) for sign, hints in found.items())


_BY_SIGN = _by_sign()


def hints_in(text: str) -> set[str]:
    """Return the hints of ``SHAPES`` that are in a text; in most there are none."""
    found = {hint for sign, hints in _BY_SIGN if sign in text for hint in hints if hint in text}
    lower = text.lower()
    found.update(hint for hint in _FOLDED if hint in lower)
    return found


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose names look secret, without those whose values plainly are not."""
    return {
        name: value
        for name, value in environ.items()
        if _SECRET_NAME.search(name.upper())
        and len(value) >= MIN_LENGTH
        and not _PLAIN_VALUE.fullmatch(value)
        and not _is_path(value)
    }


def _is_path(value: str) -> bool:
    try:
        return value.startswith(("/", "~", ".")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def forms_of(value: str) -> tuple[str, ...]:
    """Return the forms in which a known value may stand in text, itself included."""
    escaped = json.dumps(value)[1:-1]
    forms = {
        value,
        escaped,
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(escaped)[1:-1],
        repr(value)[1:-1],
        value.replace("'", "'\"'\"'"),  # inside single quotes in a shell
        *_url_forms(value),
        *_base64_forms(value.encode("utf-8", "surrogatepass")),
    }
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def flat(text: str) -> str:
    """Return the text without line breaks, such as a terminal puts into long lines."""
    return text.replace("\r", "").replace("\n", "")


def wrapped(form: str) -> str:
    """Return a pattern that finds a form also where a terminal's width has broken it into lines."""
    if len(form) > _LONGEST_WRAPPED:
        return re.escape(form)
    return r"(?:\r?\n)?".join(re.escape(character) for character in form)


def _url_forms(value: str) -> set[str]:
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    forms = {quote(value), quote(value, safe=""), quote_plus(value)}
    return forms | {re.sub("%..", lambda found: found[0].lower(), form) for form in forms}


def _base64_forms(value: bytes) -> set[str]:
    """Return base64 of the value, alone or within base64 of a longer text (``user:value``)."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + value).decode()
        first = -(-shift * 8 // 6)
        last = (shift + len(value)) * 8 // 6
        forms.add(encoded[first:last])
        if not shift:
            forms |= {encoded, encoded.rstrip("=")}
    return forms | {form.translate(str.maketrans("+/", "-_")) for form in forms}
