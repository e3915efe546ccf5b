"""Signals that end a run: taken as Ctrl-C, and held back where books would be left half written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def terminable() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C, so that books are closed and processes ended.

    A signal that is ignored, as SIGHUP is below ``nohup``, stays ignored.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    taken = [name for name in ENDING[1:] if signal.getsignal(name) is signal.SIG_DFL]
    for name in taken:
        signal.signal(name, interrupt)
    try:
        yield
    finally:
        for name in taken:
            signal.signal(name, signal.SIG_DFL)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold signals back until the block has ended, and let them work then.

    Python handles signals in the main thread only, so elsewhere there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    met: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    try:
        for name in ENDING:
            handler = signal.getsignal(name)
            if callable(handler):
                handlers[name] = handler
                signal.signal(name, lambda number, frame: met.append((number, frame)))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in met[:1]:
            handlers[number](number, frame)
