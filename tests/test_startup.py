"""What changes how a Python starts, and where modules come from: seen in real environments."""

from __future__ import annotations

from pathlib import Path

from tests.environments import make_venv, see, site_packages
from tools.imports import ImportOutcomes, ImportProbe
from tools.packages import EnvironmentState, PythonEnvironment

USUAL = {
    "_virtualenv.pth": "import _virtualenv",
    "__editable__.demo-1.0.pth": "/srv/demo",
    "distutils-precedence.pth": "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = "
    "os.environ.get(var, 'local') == 'local'; enabled and __import__('_distutils_hack'); ",
}


def test_what_changes_the_start_of_an_environment(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    site = site_packages(python)
    for module in ("_virtualenv", "_distutils_hack"):
        (site / f"{module}.py").touch()
    for name, line in USUAL.items():
        (site / name).write_text(f"# why\n\n{line}\n")
    (site / "inner").mkdir()
    (site / "plain.pth").write_text(f"inner\n{site}/inner\n# {tmp_path}\n")
    (site / "outer.pth").write_text(f"inner\n{tmp_path}\n" + "/absent\n" * 20)
    (site / "odd.pth").write_text("import sys; x = 'é'\n")
    seen: EnvironmentState = see(PythonEnvironment(), python)
    found = {Path(it.source).name: (it.usual, it.lines) for it in seen.startup or ()}
    assert {name: found.pop(name) for name in USUAL} == dict.fromkeys(USUAL, (True, []))
    assert found == {
        "outer.pth": (None, [str(tmp_path), *["/absent"] * 9, "(11 more lines)"]),
        "odd.pth": (None, ["import sys; x = 'é'"]),
    }
    assert seen.headline().endswith("changed at its start by odd.pth and outer.pth")
    (site / "_virtualenv.pth").write_text("import _virtualenv; import inner\n")
    again = see(PythonEnvironment(), python)
    assert [it.lines for it in again.startup if it.source.endswith("_virtualenv.pth")] == [
        ["import _virtualenv; import inner"]
    ]


def test_packages_of_the_system_are_said_to_be_seen(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    settings = tmp_path / "v" / "pyvenv.cfg"
    settings.write_text(settings.read_text().replace("packages = false", "packages = true"))
    first = see(PythonEnvironment(), python).startup[0]
    assert (first.source, first.lines) == (str(settings), ["include-system-site-packages = true"])


REFUSES = """import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "refused": raise ImportError("not here")
sys.meta_path.insert(0, Finder())
"""


def test_who_refuses_a_module_and_where_it_lies(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    site = site_packages(python)
    (site / "sitecustomize.py").write_text(REFUSES)
    (site / "broken.py").write_text("\nraise OSError('libx.so: wrong ELF class')\n")
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "elsewhere.py").touch()
    (site / "away.pth").write_text(f"{tmp_path}/away\n")
    found: ImportOutcomes = see(
        ImportProbe(), python, modules=["refused", "broken", "elsewhere", "xml.dom", "sys", "none"]
    )
    said = {name: (it.file, it.elsewhere, it.raised_at) for name, it in found.modules.items()}
    assert str(said.pop("xml.dom")[0]).endswith("/xml/dom/__init__.py")
    assert said == {
        "refused": (None, None, f"{site}/sitecustomize.py:4"),
        "broken": (f"{site}/broken.py", None, f"{site}/broken.py:2"),
        "elsewhere": (f"{tmp_path}/away/elsewhere.py", True, None),
        "sys": (None, None, None),
        "none": (None, None, None),
    }
    assert found.odd == [f"elsewhere imported from {tmp_path}/away, outside the environment"]
