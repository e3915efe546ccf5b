"""How output is kept within bounds."""

from __future__ import annotations

import pytest

from tools.connectors.base import Capture


@pytest.mark.parametrize("step", [1, 3, 7, 64])
@pytest.mark.parametrize("limits", [(0, 0), (1, 1), (5, 8), (10, 0), (0, 9)])
def test_cuts_never_go_through_a_character(step: int, limits: tuple[int, int]) -> None:
    text = "aé€😀" * 20
    capture = Capture(*limits)
    data = text.encode()
    for start in range(0, len(data), step):
        capture.feed(data[start : start + step])
    capture.feed(b"", final=True)
    head, _, tail = capture.text.partition(f"\n[... {capture.omitted} bytes left out ...]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) <= limits[0]
    assert len(tail.encode()) <= limits[1]
    assert len((head + tail).encode()) + capture.omitted == len(data)


def test_what_fits_is_kept_whole() -> None:
    capture = Capture(3, 4)
    for byte in "a€b€".encode()[:7]:
        capture.feed(bytes([byte]))
    assert capture.omitted == 0
    assert capture.feed(b"", final=True) == "\N{REPLACEMENT CHARACTER}"
