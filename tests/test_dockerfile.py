"""The one layer of a derived image: what it holds, what it is named, and what counts as one."""

from __future__ import annotations

import json

import pytest

from agent.dockerfile import dockerfile, name_of
from tools.images import ImageState
from tools.packages import EnvironmentState

ID = "sha256:" + "a" * 64
BASE = ImageState(present=True, id=ID)
SEEN = EnvironmentState(exists=True, executable="/usr/bin/python3", pip_version="25.0")
WISHES = ("transformers==5.3.0", "torch==2.13.0+cpu")


def words(text: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith("RUN ")]
    return list(json.loads(line.removeprefix("RUN ")))


def test_one_layer_on_this_very_image() -> None:
    text = dockerfile(BASE, SEEN, WISHES, "why\nFROM evil")
    assert [line.split()[0] for line in text.splitlines()] == ["#", "FROM", "RUN"]
    assert f"FROM {ID}" in text
    assert words(text)[-2:] == list(WISHES)


@pytest.mark.parametrize(
    ("pip", "managed", "has"),
    [
        ("21.3", False, []),
        ("22.1", False, ["--root-user-action=ignore"]),
        ("23.0", True, ["--root-user-action=ignore"]),
        ("23.0.1", True, ["--root-user-action=ignore", "--break-system-packages"]),
        ("26.1", False, ["--root-user-action=ignore"]),
    ],
)
def test_options_that_the_images_own_pip_knows(pip: str, managed: bool, has: list[str]) -> None:
    seen = SEEN.model_copy(update={"pip_version": pip, "externally_managed": managed})
    given = words(dockerfile(BASE, seen, WISHES, ""))
    known = ("--root-user-action=ignore", "--break-system-packages")
    assert [word for word in given if word in known] == has


def test_an_image_of_another_user_stays_that_users() -> None:
    text = dockerfile(BASE.model_copy(update={"user": "app"}), SEEN, WISHES, "")
    assert [line for line in text.splitlines() if line.startswith("USER")] == [
        "USER root",
        "USER app",
    ]


def test_the_name_comes_from_base_and_text() -> None:
    text = dockerfile(BASE, SEEN, WISHES, "")
    names = {name_of(ID, text), name_of(ID, text + "\n"), name_of("sha256:b", text)}
    assert len(names) == 3
    assert name_of(ID, text) == name_of(ID, text)
