"""What paramiko hardly ever uses is not loaded with it, and works where it is used."""

from __future__ import annotations

import subprocess
import sys

LOADED = "print([name for name in sys.modules if name.startswith('invoke.')])"


def said(script: str) -> str:
    words = [sys.executable, "-c", f"import sys\n{script}"]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def test_it_is_not_loaded_with_ssh() -> None:
    assert said(f"import tools.connectors.ssh\n{LOADED}") == "[]\n"


def test_it_is_loaded_when_it_is_used() -> None:
    text = "Match exec true\\n  User found\\n"
    use = f"from paramiko import SSHConfig\nc = SSHConfig.from_text('{text}').lookup('h')"
    assert said(f"import tools.connectors.ssh\n{use}\nprint(c['user'])") == "found\n"
    inner = "from invoke.exceptions import UnexpectedExit\nprint(UnexpectedExit.__name__)"
    assert said(f"import tools.connectors.ssh\n{inner}") == "UnexpectedExit\n"


def test_one_that_is_there_already_is_left_alone() -> None:
    script = "from tools.later import import_later\nimport json\nimport_later('json')\n"
    assert said(f"{script}print(sys.modules['json'] is json)") == "True\n"


def test_one_that_is_missing_is_missed_when_it_is_used() -> None:
    script = (
        "from tools.later import import_later\nimport_later('nowhere')\nimport nowhere\n"
        "try:\n  nowhere.anything\nexcept ModuleNotFoundError as error:\n  print(error)"
    )
    assert said(script) == "No module named 'nowhere'\n"
