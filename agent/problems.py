"""What a person can mend: one root for all errors that say what, where and what to do."""

from __future__ import annotations


class Problem(Exception):
    """Wrong input, or something on this machine that stands in the way; exit code 2."""


class Unreachable(Exception):
    """A service that is needed does not answer; exit code 5."""
