"""What every test gets: a home of its own, loopback only, and recorded files to compare with."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.isolation import isolate, refuse_outside

_numbers = itertools.count()
USUAL: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGHUP: signal.SIG_DFL,
}
"""What the programs under test inherit, however the tests themselves were started."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the recorded files")


def pytest_configure() -> None:
    sys.addaudithook(refuse_outside)
    for number, usual in USUAL.items():
        if signal.getsignal(number) is signal.SIG_IGN:  # as a shell or nohup starts us
            signal.signal(number, usual)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which every test has its home."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(scope="session", autouse=True)
def _session_home(homes: Path) -> Iterator[None]:
    """What fixtures for several tests see."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        isolate(monkeypatch, homes / "session")
        yield


@pytest.fixture(autouse=True)
def _own_home(_session_home: None, monkeypatch: pytest.MonkeyPatch, homes: Path) -> None:
    isolate(monkeypatch, homes / str(next(_numbers)))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a recorded file; with --update (`make golden`) rewrite the file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path.name}: see `make golden`"

    return compare
