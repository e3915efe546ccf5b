"""Story A over ssh beside a script that sends the same commands, and whether reads stay cheap.

A run's own share is what ``agent/timing.py`` finds in its transcript; how little less a script
without an agent takes for the same commands shows whether that split tells the truth.
"""

from __future__ import annotations

import collections
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.connect import connector_to
from agent.events import AnyEvent, CallQueued, CallStarted
from agent.goal_parts import Host
from agent.timing import split
from agent.transcript import read
from tests.bench.rounds import Figures, interleave, say
from tests.bench.script import Played, Sent, play, send_again
from tests.bench.table import Row, short
from tests.lab.checkout import ROOT
from tests.lab.engine import docker_run
from tests.lab.story import SERVICE, Story, derived_images, forget_derived, story, wait_for_port
from tools.base import CallContext
from tools.command import Command
from tools.connectors.base import Connector
from tools.search import Grep, GrepArgs

RECORDED = ROOT / "transcripts" / "story_a_spark.jsonl"
KEPT = "bringup-bench:layer"
"""Keeps the derived image's layer from run to run; no run looks for this name."""
MOST_PERCENT, MOST_STARTS, MOST_GROWTH = 5.0, 1.0, 1.2
"""Targets: own share of the wall time; containers started to ask an image; late reads against
early ones."""
FEW, MANY = 100, 1000
"""Reads over one connection."""


def rows(pairs: int) -> list[Row]:
    """Look at the recorded run; measure pairs of run and script, and as many rounds of reads."""
    recorded = read(RECORDED).events
    table = [_own(RECORDED.name, [recorded]), _starts(RECORDED.name, [recorded])]
    if not pairs:
        return table
    with tempfile.TemporaryDirectory(prefix="bringup-bench-") as folder:
        try:
            with _place(Path(folder)) as place:
                return [*table, *_story(place, pairs), *_reads(place.goal.hosts[0], pairs)]
        except pytest.skip.Exception as missing:
            return [*table, Row("story A over ssh", f"skipped: {missing}")]


@contextmanager
def _place(folder: Path) -> Iterator[Story]:
    """Lay out the story's place; nothing of it, or of its runs, stays."""
    with pytest.MonkeyPatch.context() as patch, story(folder) as place:
        for name, value in place.variables.items():
            patch.setenv(name, value)
        try:
            yield place
        finally:
            forget_derived()
            if docker_run("images", "--quiet", KEPT):
                docker_run("rmi", "--force", KEPT)


def _put_back(place: Story) -> None:
    """Make the place what it was before a run, but for the layer that is kept."""
    forget_derived()
    docker_run("restart", SERVICE)
    wait_for_port(place.port)
    for path in (*place.spark.models.iterdir(), place.spark.home / ".cache"):
        if path.exists():
            shutil.rmtree(path)


def _story(place: Story, pairs: int) -> list[Row]:
    """Run the story once for its layer, then in pairs with its script.

    With the layer there, the build takes no time: what pip takes depends on its index that day,
    and would be most of a run's time and of the difference between two.
    """
    played: list[Played] = []

    def run() -> Figures:
        _put_back(place)
        played.append(play(place.goal, place.path.parent / "runs"))
        return {"s": played[-1].seconds}

    def script() -> Figures:
        _put_back(place)
        return {"s": send_again(place.goal, played[-1].script)}

    say("story A, without its layer")
    run()
    docker_run("tag", derived_images()[0], KEPT)
    taken = interleave({"run": run, "script": script}, pairs, warmups=0)
    ratio = taken.ratio("run", "script", "s")
    commands = sum(isinstance(line, Sent) for line in played[-1].script)
    events = [run.events for run in played[1:]]
    return [
        Row(
            "story A over ssh",
            short(taken.median("run", "s"), "s"),
            f"a script of its {commands} commands",
            short(taken.median("script", "s"), "s"),
            ratio,
        ),
        Row("story A over ssh: 1 - script ÷ run", short((1 - 1 / ratio) * 100, "%")),
        _own("story A over ssh", events),
        _starts("story A over ssh", events),
    ]


def _own(what: str, runs: Sequence[Sequence[AnyEvent]]) -> Row:
    """Judge the own part of the wall time: what the transcripts leave when all else is taken."""
    spent = [split(events) for events in runs]
    share = statistics.median(one.own_share for one in spent)
    return Row(
        f"{what}: our own part",
        short(statistics.median(one.own_s for one in spent), "s"),
        "header to end",
        short(statistics.median(one.total_s for one in spent), "s"),
        share,
        judged=share * 100,
        at_most=MOST_PERCENT,
        unit="%",
    )


def _starts(what: str, runs: Sequence[Sequence[AnyEvent]]) -> Row:
    """Judge how many containers were started to ask one image, at most."""
    counts = [_probes(events) for events in runs]
    most = max(max(count.values(), default=0) for count in counts)
    images = max(map(len, counts))
    return Row(
        f"{what}: starts to ask each of {images} images",
        short(most),
        judged=most,
        at_most=MOST_STARTS,
    )


def _probes(events: Iterable[AnyEvent]) -> collections.Counter[str]:
    """Count by image the containers that were started to ask it."""
    images: dict[str, str] = {}
    count: collections.Counter[str] = collections.Counter()
    for event in events:
        if isinstance(event, CallQueued) and event.call.tool == "image_probe":
            images[event.call.id] = str(event.call.args["image"])
        elif isinstance(event, CallStarted) and event.call_id in images:
            count[images[event.call_id]] += event.argv[:2] == ("docker", "run")
    return count


def _reads(host: Host, rounds: int) -> list[Row]:
    """Measure a cheap read, many times over one connection: the last ones beside the first."""
    args = GrepArgs(pattern=".", path="/etc/hostname")
    command = Grep().command(args, CallContext("bench", "b1", "@bench", ".cache/bringup/bench"))

    def reads() -> Figures:
        connector = connector_to(host)
        try:
            connector.run(command)  # opens the connection
            taken = [_milliseconds(connector, command) for _ in range(MANY)]
        finally:
            connector.close()
        return {"first": statistics.median(taken[:FEW]), "last": statistics.median(taken[-FEW:])}

    taken = interleave({"reads": reads}, rounds, warmups=0)
    growth = statistics.median(found["last"] / found["first"] for found in taken.figures["reads"])
    return [
        Row(
            f"a read over ssh, the last {FEW} of {MANY:,}",
            short(taken.median("reads", "last"), "ms"),
            f"the first {FEW}",
            short(taken.median("reads", "first"), "ms"),
            growth,
            judged=growth,
            at_most=MOST_GROWTH,
            unit="times",
        )
    ]


def _milliseconds(connector: Connector, command: Command) -> float:
    """Time one command; one that fails is no figure.

    Raises:
        RuntimeError: it failed.
    """
    begin = time.perf_counter()
    result = connector.run(command)
    if not result.ok:
        raise RuntimeError(f"{command.text}: {result.how}")
    return (time.perf_counter() - begin) * 1e3
