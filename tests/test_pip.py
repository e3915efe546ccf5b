"""pip is asked and used for real, in an environment of its own, with a folder for an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.environments import make_venv, make_wheel, see, site_packages
from tools.base import Tool
from tools.errors import ToolFailed
from tools.installation import Installation, InstallPip, PipInstall, PipResolve, Resolution
from tools.packages import (
    PipCheck,
    PipConflicts,
    PipList,
    PipShow,
    PythonEnvironment,
    ShownPackages,
)


def test_pip_from_nothing(tmp_path: Path) -> None:
    """No pip, pip installed, asked, used and checked; the index is a folder, the network is off."""
    python = make_venv(tmp_path / "v")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels, "demo_base", "1.0")
    make_wheel(wheels, "demo_base", "2.0")
    make_wheel(wheels, "demo_engine", "1.0", "Requires-Dist: demo-base<2")
    make_wheel(wheels, "demo_future", "1.0", "Requires-Python: >=3.99")
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": "/dev/null"}

    def pip(tool: Tool[Any, Any], **args: Any) -> Any:
        return see(tool, python, env=env, **args)

    with pytest.raises(ToolFailed, match=r"no working pip in .*/v: .*No module named pip"):
        pip(PipList())
    done: Installation = pip(InstallPip())
    assert done.installed[0].startswith("pip==")
    assert see(PythonEnvironment(), python).pip_version

    resolution: Resolution = pip(
        PipResolve(), requirements=["demo_base"], constraints=["demo_base<2"]
    )
    assert [(it.name, it.to_version) for it in resolution.moves] == [("demo-base", "1.0")]
    done = pip(PipInstall(), requirements=["demo_base"], constraints=["demo_base<2"])
    assert done.installed == ["demo-base==1.0"]
    assert pip(PipInstall(), requirements=["demo_base"]).already
    assert "is there already" in pip(PipResolve(), requirements=["demo_base"]).headline()
    mended = site_packages(python) / "demo_base-1.0.dist-info" / "METADATA"
    before = mended.read_text()
    mended.write_text(before.replace("demo", "damaged"))
    done = pip(PipInstall(), requirements=["demo_base==1.0"], reinstall=True)
    assert (done.installed, mended.read_text()) == (["demo-base==1.0"], before)
    calm: PipConflicts = pip(PipCheck())
    assert (calm.fits, calm.headline()[:12]) == (True, "no conflicts")

    (move,) = pip(PipResolve(), requirements=["demo_base>=2"]).moves
    assert (move.from_version, move.to_version) == ("1.0", "2.0")
    refused: Resolution = pip(PipResolve(), requirements=["demo_base>=2", "demo_engine"])
    assert refused.error_kind == "conflict"
    assert "depends on demo-base<2" in refused.error
    future: Resolution = pip(PipResolve(), requirements=["demo_future"])
    assert (future.error_kind, future.requires_python) == ("requires_python", ">=3.99")

    pip(PipInstall(), requirements=["demo_engine"])
    done = pip(PipInstall(), requirements=["demo_base==2.0"])
    assert done.conflicts
    conflicts: PipConflicts = pip(PipCheck())
    assert not conflicts.fits
    assert ["demo-base<2" in line for line in conflicts.conflicts] == [True]
    shown: ShownPackages = pip(PipShow(), names=["demo-base", "demo-nothing"])
    assert (shown.packages[0].required_by, shown.missing) == (["demo-engine"], ["demo-nothing"])
    with pytest.raises(ToolFailed, match="No matching distribution found for demo_nothing"):
        pip(PipInstall(), requirements=["demo_nothing"])


@pytest.mark.parametrize("text", ["--index-url=http://x", "-e .", "a\n-r /etc/passwd", "#", ""])
def test_a_requirement_is_never_an_option(text: str) -> None:
    for field in ("requirements", "constraints"):
        args = {"python": "python3", "requirements": ["demo"], field: [text]}
        with pytest.raises(ValueError, match="should match pattern"):
            PipInstall().args_type.model_validate(args)


MOVES = {"demo": True, "demo>=1": True, "demo==1.*": True, "demo[x]": True}
STAYS = {"demo==1.0": False, "demo[x] == 1.0+cpu": False, "/srv/demo-1.0-py3-none-any.whl": False}


@pytest.mark.parametrize(("text", "moves"), [*MOVES.items(), *STAYS.items()])
def test_what_is_written_again_keeps_its_version(text: str, moves: bool) -> None:
    args = {"python": "python3", "requirements": [text], "reinstall": True}
    if moves:
        with pytest.raises(ValueError, match="reinstall moves no version"):
            PipInstall().args_type.model_validate(args)
    else:
        assert PipInstall().args_type.model_validate(args).model_dump()["reinstall"]
    usual = PipInstall().args_type.model_validate({**args, "reinstall": False})
    assert usual.model_dump()["reinstall"] is None, "as in recordings from before there was one"
