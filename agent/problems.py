"""What a person can mend: one root for every error whose message says what, where and what to do."""

from __future__ import annotations


class Problem(Exception):
    """Wrong input, or something on this machine that stands in the way; exit code 2."""
