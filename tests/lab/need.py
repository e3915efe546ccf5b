"""What a test needs beside Python: missing, the test is skipped, or fails where all must run."""

from __future__ import annotations

import os

import pytest

REQUIRE_LAB = "BRINGUP_REQUIRE_LAB"
"""Set to 1 where nothing may be missing, as in CI."""


def need(part: bool, reason: str) -> None:
    """Go on when a part of the lab is there.

    Args:
        part: Whether it is there.
        reason: What is missing, and how to get it: "tmux is missing (apt-get install tmux)".
    """
    if part:
        return
    if os.environ.get(REQUIRE_LAB) == "1":
        pytest.fail(f"{reason}; {REQUIRE_LAB}=1 asks for the whole lab", pytrace=False)
    pytest.skip(reason)
