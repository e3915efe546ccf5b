"""Signals that end a run: taken as Ctrl-C, and held back where books would be left half written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Met = tuple[int, FrameType | None]
_taken: set[signal.Signals] = set()
"""Signals whose handler is ours."""
_holding: list[list[_Met]] = []
"""What was met so far, while the main thread holds signals back; else empty."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End what runs, as Ctrl-C does; later, where signals are held back."""
    if not _holding:
        raise KeyboardInterrupt
    _holding[0].append((number, frame))


@contextmanager
def terminable() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C, so that books are closed and processes ended.

    A signal that is ignored, as SIGHUP is below ``nohup``, stays ignored.
    """
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {name: signal.getsignal(name) for name in ENDING}
    taken = {name: handler for name, handler in before.items() if handler in usual}
    for name in taken:
        signal.signal(name, _interrupt)
    _taken.update(taken)
    try:
        yield
    finally:
        _taken.difference_update(taken)
        for name, handler in taken.items():
            signal.signal(name, handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold signals back until the block has ended, and let them work then.

    Python handles signals in the main thread only, so elsewhere there is nothing to hold back; nor
    is there inside another such block. Handlers of ``terminable`` know of it; others are replaced
    meanwhile, which takes longer.
    """
    if _holding or threading.current_thread() is not threading.main_thread():
        yield
        return
    met: list[_Met] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    try:
        _holding.append(met)
        for name in ENDING:
            handler = None if name in _taken else signal.getsignal(name)
            if callable(handler):
                handlers[name] = handler
                signal.signal(name, _interrupt)
        yield
    finally:
        _holding.clear()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in met[:1]:
            handlers.get(number, _interrupt)(number, frame)
