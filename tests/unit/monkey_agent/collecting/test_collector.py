"""The collector: all values in the metrics file, each once, wherever it is killed and whatever writers do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from monkey_agent.collecting.collector import COLLECTED, Collector
from tests.unit.monkey_agent.collecting.event_files import event, simple

EVENTS, TABLE, OUTPUT = {"tensorboard": ""}, {"csv": "**/*.csv"}, {"stdout": r"(?P<free>\d+) free"}


class Job:
    """The directories of a job, and collectors of it."""

    def __init__(self, root: Path, *sources: Mapping[str, str]) -> None:
        self.root, self.sources = root, sources
        for name in ("work", "outputs", "checkpoint", "metrics"):
            (root / name).mkdir()
        (root / "log").touch()

    def collector(self) -> Collector:
        roots = [str(self.root / name) for name in ("work", "outputs", "checkpoint")]
        return Collector(roots, str(self.root / "log"), str(self.root / "metrics"), self.sources)

    def collect(self) -> list[str]:
        """Look once, as a collector does after the end of the job."""
        collector = self.collector()
        try:
            return collector.look(over=True)
        finally:
            collector.close()

    def write(self, path: str, data: bytes | str, *, again: bool = False) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        with (self.root / path).open("wb" if again else "ab") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def found(self) -> list[tuple[int | None, dict[str, Any]]]:
        lines = (self.root / "metrics" / COLLECTED).read_text().splitlines()
        return [(record["step"], record["m"]) for record in map(json.loads, filter(None, lines))]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    yield Job(tmp_path, EVENTS, TABLE, OUTPUT)


def test_all_sources_come_into_one_file_as_they_grow(job: Job) -> None:
    collector = job.collector()
    job.write("work/runs/events.out.tfevents.1.h", event(1, simple("loss", 0.5)))
    job.write("outputs/log.csv", "epoch,acc\n1,0.25\n2,0.5")
    job.write("log", "7 free\n8 fr")
    assert not collector.look()
    assert job.found() == [(1, {"loss": 0.5}), (1, {"acc": 0.25}), (None, {"free": 7})]
    job.write("work/runs/events.out.tfevents.1.h", event(2, simple("loss", 0.25)))
    job.write("log", "ee\n")
    assert not collector.look(over=True)
    assert job.found()[3:] == [(2, {"loss": 0.25}), (2, {"acc": 0.5}), (None, {"free": 8})]


def parse(line: str) -> Any:
    """Return the record of a line; None for one that was cut short, also behind an inner brace."""
    with suppress(ValueError):
        return json.loads(line)
    return None


def test_a_killed_collector_is_continued_wherever_its_file_ends(job: Job) -> None:
    job.write("work/events.out.tfevents.1.h", b"".join(event(step, simple("loss", step / 4)) for step in range(5)))
    job.write("work/log.csv", "epoch,acc\n1,0.25\n2,0.5\n")
    job.write("log", "7 free\n7 free\n8 free\n")
    job.collect()
    whole, path = job.found(), job.root / "metrics" / COLLECTED
    data = path.read_bytes()
    assert len(whole) == 10
    for end in range(0, len(data), 7):
        path.write_bytes(data[:end])
        job.collect()
        again = [(record["step"], record["m"]) for record in filter(None, map(parse, path.read_text().splitlines()))]
        assert sorted(map(str, again)) == sorted(map(str, whole)), end


def test_each_table_numbers_its_own_rows_without_a_step(job: Job) -> None:
    """The step column is there, and its cells are not whole numbers: rows of a second file were taken for known."""
    collector = job.collector()
    for path in ("work/a/log.csv", "work/b/log.csv", "outputs/a/log.csv"):
        job.write(path, f"epoch,{path.split('/')[0]}_{path.split('/')[1]}\n0.5,1\n")
    assert not collector.look()
    for path in ("work/a/log.csv", "work/b/log.csv", "outputs/a/log.csv"):
        job.write(path, "1.5,2\n")
    assert not collector.look(over=True)
    expected = [(None, {name: value}) for name in ("outputs_a", "work_a", "work_b") for value in (1, 2)]
    assert sorted(job.found(), key=str) == expected
    collector.close()
    # An agent that begins again knows how far it was in each.
    job.collect()
    assert sorted(job.found(), key=str) == expected


def test_a_table_that_is_written_again_gives_only_what_is_new(job: Job) -> None:
    collector = job.collector()
    job.write("work/metrics.csv", "epoch,step,train\n0,1,0.5\n0,2,0.25\n")
    collector.look()
    # Lightning's logger writes it again, with a longer head, and may be seen half-way.
    job.write("work/metrics.csv", "epoch,step,train,val\n0,1,0.5", again=True)
    collector.look()
    job.write("work/metrics.csv", ",\n0,2,0.25,\n0,2,,0.125\n")
    collector.look()
    assert [(step, {k: v for k, v in m.items() if k != "epoch"}) for step, m in job.found()] == [
        *((1, {"train": 0.5}), (2, {"train": 0.25}), (2, {"val": 0.125})),
    ]
    # Begun again by a job that starts over: other values of known steps are new.
    job.write("work/metrics.csv", "epoch,step,train\n0,1,9\n0,2,0.25\n", again=True)
    collector.look()
    assert job.found()[-1] == (1, {"train": 9})


def test_later_event_files_go_after_earlier_ones(job: Job) -> None:
    for name, value in (("200.b", 2.0), ("100.a", 1.0)):
        job.write(f"checkpoint/tb/events.out.tfevents.{name}", event(1, simple("loss", value)))
    job.collect()
    assert [m["loss"] for _, m in job.found()] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("path", "tag", "metric"),
    [
        ("runs/Nov25_host", "Loss/train", "Loss/train"),
        ("logs/train", "epoch_loss", "train/epoch_loss"),
        ("logs/validation", "epoch_loss", "validation/epoch_loss"),
        ("runs/x/Loss_a_first", "Loss/a", "Loss/a/first"),
        ("runs/x/Loss/a/first", "Loss/a", "Loss/a/first"),
        ("logs/train", "train/loss", "train/loss"),
    ],
)
def test_runs_that_give_the_same_tags_are_told_apart(job: Job, path: str, tag: str, metric: str) -> None:
    job.write(f"work/{path}/events.out.tfevents.1.h", event(1, simple(tag, 1.0)))
    job.collect()
    assert job.found() == [(1, {metric: 1.0})]


def test_what_is_no_file_of_the_job_is_left_alone(job: Job, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "secret.csv").write_text("step,secret\n1,42\n")
    (job.root / "work" / "link.csv").symlink_to(secret / "secret.csv")
    (job.root / "work" / "linked").symlink_to(secret)
    os.mkfifo(job.root / "work" / "pipe.csv")
    job.write("work/events.out.tfevents.9", b"\x01" * 40)
    job.write("work/names.csv", "step," + "x" * 300 + ",ok\n1,2,3\n")
    [note] = job.collect()
    assert "read no further" in note and job.found() == [(1, {"ok": 3})]


def test_two_collectors_of_a_job_wait_for_each_other(job: Job) -> None:
    job.write("log", "7 free\n")
    order = {"roots": [], "log": str(job.root / "log"), "metrics": str(job.root / "metrics"), "sources": job.sources}
    command = [sys.executable, "-m", "monkey_agent.collecting.collector", json.dumps(order)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "env": env}
    with subprocess.Popen(command, **pipes) as first, subprocess.Popen(command, **pipes) as second:
        for process in (first, second):
            assert process.stdin is not None
            process.stdin.write(b"\n\n")
            process.stdin.close()
    assert (first.returncode, second.returncode) == (0, 0) and job.found() == [(None, {"free": 7})]
