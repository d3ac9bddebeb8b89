"""Directories of jobs that are swapped for links at any moment: nothing behind a link is read, sent or removed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from monkey.metrics.spool import Spool
from monkey.protocol.layout import Keys
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.store.memory import MemoryStore
from monkey.transfer.globs import GlobPatterns
from monkey_agent.cache.code_cache import read_snapshot
from monkey_agent.checkpoints.captures import take_capture
from monkey_agent.checkpoints.directory_scan import scan_path
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.checkpoints.restore import restore_checkpoint
from monkey_agent.execution.workspace import Workspaces
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.uploads.abandoned_attempts import AbandonedAttempts
from monkey_agent.uploads.job_outputs import OutputUpload, find_outputs
from monkey_agent.uploads.metric_files import MetricFiles
from tests import swaps
from tests.loops import Run
from tests.precious import MARK, Precious
from tests.steps import Step
from tests.unit.monkey_agent.body import Body

#: Runs of jobs that swap: some, and many.
RUNS = (3, 1_000 if "MONKEY_LONG" in os.environ else 100)


@pytest.fixture(scope="module")
def step() -> Step:
    return Step()


class Stage:
    """An agent's directory with one workspace in use."""

    def __init__(self, place: Path, *, filled: bool) -> None:
        self.state, self.store = place / "state", MemoryStore()
        self.spaces = Workspaces(self.state)
        self.space = self.spaces.take("a" * 16, 1)
        if filled:
            swaps.fill(self.space.root)
            Path(self.space.log).write_text("said\n")


async def clear(stage: Stage) -> None:
    stage.spaces.give(stage.space)


async def send_outputs(stage: Stage) -> None:
    found = find_outputs(stage.space, GlobPatterns(["**"]), None, lambda _: None, lambda _: None)
    await OutputUpload(stage.store, "out/").send(found)


async def read_metrics(stage: Stage) -> None:
    metrics = MetricFiles(stage.space.metrics)
    assert set(metrics.sizes()) <= {"0.jsonl"}
    assert set(await metrics.finish()) <= {"ours"}


async def ship_log(stage: Stage) -> None:
    log = AttemptLog(stage.store, "log/", stage.space.log)
    log.note("a line of ours")
    await log.ship()


async def capture_links(stage: Stage, *, copies: bool = False) -> None:
    before = scan_path(stage.space.checkpoint)
    take_capture(stage.space.checkpoint, before, f"{stage.state}/capture", copies=copies)


async def capture_copies(stage: Stage) -> None:
    await capture_links(stage, copies=True)


async def restore(stage: Stage) -> None:
    source, kept = stage.state / "source", LocalCheckpoints(stage.state)
    source.mkdir()
    (source / "saved").touch()
    made = take_capture(str(source), scan_path(str(source)), kept.aside(), copies=False)
    kept.add(made, stage.space.job, 1)
    await restore_checkpoint(stage.store, Keys("project"), kept, stage.space.job, stage.space.checkpoint)


async def keep_points(stage: Stage) -> None:
    spool = Spool(f"{stage.state}/spool", InfluxSettings("http://127.0.0.1:1", bucket="m"))
    spool.keep(stage.space.name, stage.space.metrics)


async def rescue_metrics(stage: Stage) -> None:
    AbandonedAttempts(stage.state, [], lambda _: {})


async def copy_code(stage: Stage) -> None:
    code = stage.state / "code"
    code.mkdir()
    (code / "train.py").write_text("print()")
    read_snapshot(str(code)).copy_to(stage.space.work)


#: What the agent does with a workspace that a job has filled, and with a new one; and what is swapped meanwhile.
FILLED = {
    clear: swaps.PLACES,
    send_outputs: ("", "outputs", "outputs/a", "work", "work/a"),
    read_metrics: ("", "metrics"),
    ship_log: ("",),
    capture_links: ("", "checkpoint", "checkpoint/a"),
    capture_copies: ("", "checkpoint", "checkpoint/a"),
    keep_points: ("", "metrics"),
    rescue_metrics: ("", "metrics"),
}
NEW = {copy_code: ("", "work"), restore: ("", "checkpoint")}


@pytest.mark.parametrize("deed", FILLED | NEW, ids=lambda deed: deed.__name__)
def test_a_swap_before_any_step_hits_nothing(
    deed: Callable[[Stage], Awaitable[None]], step: Step, tmp_path: Path, run: Run
) -> None:
    """It is done again and again, with the swap one step later, until it comes too late."""
    precious = Precious(tmp_path / "precious")
    for place in (FILLED | NEW)[deed]:
        for n in range(1_000):
            where = tmp_path / f"{place.replace('/', '.')}.{n}"
            stage = Stage(where, filled=deed in FILLED)
            swap = partial(swaps.swap, stage.space.root, place, str(precious.root))
            with contextlib.suppress(OSError), step.before(n, swap):
                run(deed(stage))
            stage.spaces.close_sockets()
            stage.spaces.empty_trash()
            precious.check(where)
            assert MARK not in b"".join(_stored(stage.store, run)), (place, n)
            if not step.came:
                break
        assert n > 1, "it did something"


def _stored(store: MemoryStore, run: Run) -> list[bytes]:
    return [run(store.get(item.key)) for item in run(store.list(""))]


async def race(body: Body, precious: Precious, runs: int) -> Counter[str]:
    """Run jobs that swap their directories, while another process swaps them, too; returns how they ended."""
    ended: Counter[str] = Counter()
    job = [sys.executable, "-I", "-S", swaps.__file__, str(precious.root), "0.03"]
    settings = {"influx": InfluxSettings("http://127.0.0.1:1", bucket="m"), "checkpoint_every": 1, "max_retries": 0}
    for _ in range(runs):
        running = await body.start(job, outputs=["**"], settings=settings)
        await running.process.ended
        with swaps.swapping(running._space.root, str(precious.root)):
            outcome = await running.wait()
            await asyncio.sleep(0)
            running.leave(recorded=True)
        ended[f"{outcome.ending.name} {'replaced' * ('replaced' in outcome.reason)}".strip()] += 1
    return ended


@pytest.mark.parametrize("runs", [RUNS[0], pytest.param(RUNS[1], marks=pytest.mark.slow)])
def test_jobs_that_swap_their_directories_at_random_moments_harm_nothing(
    body: Body, run: Run, tmp_path: Path, runs: int
) -> None:
    """The files behind the links are compared by hash, after all."""
    precious = Precious(tmp_path / "precious")
    ended = run(race(body, precious, runs))
    run(body.runner.close())
    precious.check(body.state)
    assert MARK not in b"".join(_stored(body.store, run))
    print(dict(ended))
    assert runs == RUNS[0] or (ended["SUCCEEDED"] and ended["FAILED replaced"]), "it raced with both"
