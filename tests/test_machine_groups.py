"""Memory by control groups of both versions, from a real shell; only the groups are imitated."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.lab.need import need
from tests.machines import codes, look, program
from tools.machine import MachineFacts

MIB = 2**20
FIRST, SECOND = "a" * 64, "b" * 64
DOCKER = f"""case $1 in
  version) echo 'version {{"Server":{{"Version":"28.2.2"}}}}' ;;
  info) echo 'info {{"Images":1}}' ;;
  ps)
    for id in {FIRST} {SECOND}; do
      case $2 in
        -q) echo $id ;;
        *) echo 'service {{"ID":"'$id'","Names":"'${{id%${{id#?}}}}'"}}' ;;
      esac
    done ;;
esac"""
"""An engine with two containers, ``a`` and ``b``."""


def with_groups(folder: Path, files: dict[str, str], path: str = "") -> MachineFacts:
    """Look at this machine while its control groups are others."""
    need(os.geteuid() == 0 and shutil.which("unshare") is not None, "mounts need root and unshare")
    for name, text in files.items():
        file = folder / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    enter = folder / "enter"
    enter.write_text(f'mount --bind {folder}/groups /sys/fs/cgroup\nexec sh "$@"\n')
    return look("unshare", "--mount", "sh", str(enter), PATH=path or os.environ["PATH"])


@pytest.mark.lab
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("cache_mib", [0, 60])
def test_what_a_limit_leaves(tmp_path: Path, version: int, cache_mib: int) -> None:
    limit, used, cache = 64 * MIB, 63 * MIB, cache_mib * MIB
    files = {"memory.max": f"{limit}\n", "memory.current": f"{used}\n"}
    files["memory.stat"] = f"anon 1\ninactive_file {cache}\nactive_file 5\n"
    if version == 1:
        files = {"memory/memory.limit_in_bytes": f"{limit}\n"}
        files["memory/memory.usage_in_bytes"] = f"{used}\n"
        files["memory/memory.stat"] = f"inactive_file 7\ntotal_inactive_file {cache}\n"
    facts = with_groups(tmp_path, files)
    assert facts.memory is not None
    assert (facts.memory.usable_mib, facts.memory.free_mib) == (64, 1 + cache_mib)
    assert ("memory_low" in codes(facts)) is (cache_mib == 0)


@pytest.mark.lab
def test_the_cache_of_one_container_is_not_anothers(tmp_path: Path) -> None:
    files = {
        f"docker/{FIRST}/memory.current": f"{100 * MIB}\n",
        f"docker/{FIRST}/memory.stat": f"inactive_file {40 * MIB}\n",
        f"docker/{SECOND}/memory.current": f"{100 * MIB}\n",
    }
    facts = with_groups(tmp_path, files, program(tmp_path / "bin", "docker", DOCKER))
    assert facts.docker is not None
    assert {it.name: it.mib for it in facts.docker.services} == {"a": 60, "b": 100}
