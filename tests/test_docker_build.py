"""Building images on a real engine: what comes, and the earliest real cause where it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.docker_host import CALL, LABEL, base, new_name, remove_image, run, use, use_engine
from tests.lab.engine import docker_run
from tools.command import Command, Ending
from tools.connectors.local import Local
from tools.errors import ToolFailed
from tools.image_build import BuildImage, BuildImageArgs
from tools.images import InspectImage, RemoveImage

pytestmark = pytest.mark.lab


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    use_engine(monkeypatch)


@pytest.fixture
def tag() -> Iterator[str]:
    name = f"{new_name()}:1"
    yield name
    remove_image(name)
    for left in docker_run("images", "--all", "--quiet", "--filter", f"label=of={name}").split():
        remove_image(left)


def failed(tag: str, *steps: str) -> str:
    """Build on the base image; return the message with which it fails."""
    text = "\n".join((f"FROM {base()}", f"LABEL of={tag}", *steps))
    with pytest.raises(ToolFailed) as caught:
        use(BuildImage(), dockerfile=text, tag=tag, base=base())
    assert not use(InspectImage(), image=tag).present
    return str(caught.value)


def test_a_build_is_told_labelled_and_cached_the_next_time(tag: str) -> None:
    text = f"FROM {base()}\nRUN echo WARNING: {new_name()}; echo $((40 + 2)) > /answer\n"
    told: list[str] = []
    built = use(
        BuildImage(), lambda stream, line: told.append(line), dockerfile=text, tag=tag, base=base()
    )
    assert "WARNING: bringup-test-" in "".join(told)
    assert (built.tag, built.cached, len(built.warnings)) == (tag, False, 1)
    state = use(InspectImage(), image=tag)
    assert state.id == built.image_id
    assert state.labels == {
        **dict([LABEL.split("=")]),
        "bringup.made": "image",
        "bringup.call": CALL.call_id,
        "bringup.content": tag,
    }
    again = use(BuildImage(), dockerfile=text, tag=tag, base=base())
    assert (again.cached, again.image_id) == (True, built.image_id)
    assert use(RemoveImage(), image=tag).deleted > 0


def test_a_failed_step_says_its_own_error_first(tag: str) -> None:
    message = failed(tag, "RUN echo fine", 'RUN python3 -c "{}[1]"')
    first, last = message.split("\n")
    assert first == f'docker build {tag} failed at step 4/8 (RUN python3 -c "{{}}[1]"): KeyError: 1'
    assert "returned a non-zero code: 1" in last


def test_pip_says_why_it_failed(tag: str) -> None:
    message = failed(tag, "RUN pip install --no-index --no-cache-dir no-such-package-at-all")
    assert "No matching distribution found for no-such-package-at-all" in message
    assert "step 3/7" in message


def test_a_disk_that_is_full_is_named(tag: str) -> None:
    message = failed(tag, "RUN head -c 80M /dev/zero > /dev/shm/x; rm -f /dev/shm/x; exit 1")
    assert message.split(": ", 1)[1].startswith("head: ")
    assert "No space left on device" in message.split("\n")[0]


def test_a_base_that_vanished_is_named(tag: str) -> None:
    gone = f"127.0.0.1:9/{new_name()}:1"  # so that nobody is asked for it but this machine
    docker_run("tag", base(), gone)
    assert use(InspectImage(), image=gone).present
    remove_image(gone)
    with pytest.raises(ToolFailed) as caught:
        use(BuildImage(), dockerfile=f"FROM {gone}\nRUN true", tag=tag, base=gone)
    assert f"failed at step 1/6 (FROM {gone})" in str(caught.value)
    assert "connection refused" in str(caught.value)


def test_a_dockerfile_that_is_none_is_the_engines_to_refuse(tag: str) -> None:
    assert "nonsense" in failed(tag, "NONSENSE true").lower()


def test_a_build_that_takes_too_long_is_ended_with_its_container(tag: str) -> None:
    text = f"FROM {base()}\nLABEL of={tag}\nRUN echo begun; sleep 60\n"
    args = BuildImageArgs(dockerfile=text, tag=tag, base=base())
    command = BuildImage().command(args, CALL)
    short = Command.of(*command.argv, stdin=text, via="engine", timeout_s=2)
    result = Local().run(short)
    assert result.ending is Ending.TIMED_OUT
    assert 2 <= result.duration_s < 4
    assert "begun" in result.stdout
    with pytest.raises(ToolFailed, match=r"no answer within 2 s"):
        BuildImage().parse(args, CALL, result)
    deadline = time.monotonic() + 10
    while docker_run("ps", "--quiet", "--filter", f"label=of={tag}"):
        assert time.monotonic() < deadline, "the build goes on without us"
        time.sleep(0.1)


def test_an_interrupted_build_stops(tag: str) -> None:
    text = f"FROM {base()}\nLABEL of={tag}\nRUN echo begun; sleep 60\n"

    def interrupt(stream: str, line: str) -> None:
        if "begun" in line and "Step" not in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(BuildImage(), interrupt, dockerfile=text, tag=tag, base=base())
    deadline = time.monotonic() + 10
    while docker_run("ps", "--quiet", "--filter", f"label=of={tag}"):
        assert time.monotonic() < deadline, "the build goes on without us"
        time.sleep(0.1)
