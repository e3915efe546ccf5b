"""Which files no look reads, by their names alone."""

from __future__ import annotations

import pytest

from agent.private_files import is_private, is_wide, kept_private
from agent.values import ToolCall
from tests.lab.world_runs import call


@pytest.mark.parametrize(
    ("path", "private"),
    [
        ("/home/a/.ssh/id_ed25519", True),
        ("/home/a/.SSH/config", True),
        ("/root/.ssh", True),
        ("//root/./x/../.ssh/config", True),
        ("/home/a/.netrc", True),
        ("/home/a/.docker/config.json", True),
        ("/data/me/.cache/huggingface/token", True),
        ("/data/me/.cache/huggingface/hub/models--o--n/config.json", False),
        ("/etc/shadow", True),
        ("/etc/shadow-", True),
        ("/proc/self/environ", True),
        ("/proc/1/root/etc/shadow", True),
        ("/run/secrets/token", True),
        ("/srv/app/.env", True),
        ("/srv/.env/lib/python3.11/site.py", False),
        ("/backup/id_rsa.old", True),
        ("/etc/hosts", False),
        ("/proc/meminfo", False),
        ("/srv/model/tokenizer.json", False),
        ("/srv/notes/keys.md", False),
        ("/home/a/.bash_history", True),
    ],
)
def test_private_files_are_known_by_their_names(path: str, private: bool) -> None:
    assert is_private(path) is private


@pytest.mark.parametrize(
    ("path", "wide"),
    [
        ("/", True),
        ("/home/", True),
        ("/home/alice", True),
        ("/home/alice/work", False),
        ("/root/.", True),
        ("/etc", True),
        ("/etc/docker", False),
        ("/proc/4711", True),
        ("/proc/meminfo", False),
        ("/var/log", False),
        ("/srv/x/..", False),
    ],
)
def test_folders_with_private_files_in_them_are_not_searched(path: str, wide: bool) -> None:
    assert is_wide(path) is wide


def test_whatever_argument_names_it_and_folders_where_they_are_searched() -> None:
    key, home = "/root/.ssh/id_rsa", "/home/alice"
    for tool, name in (
        ("read_file", "path"),
        ("grep", "path"),
        ("config_probe", "model"),
        ("weights_state", "folder"),
        ("image_probe", "config"),
        ("list_folder", "path"),
        ("replace_in_file", "path"),
        ("set_aside", "path"),
    ):
        assert key in kept_private(ToolCall(tool=tool, args={name: key}))
        assert kept_private(ToolCall(tool=tool, args={name: "/srv/model"})) == ""
    assert "further down" in kept_private(call("grep", path=home))
    assert kept_private(call("weights_state", folder=home)) == "", "it lists sizes"
    assert kept_private(call("config_probe", model="o/id_rsa")) == "", "no path"
