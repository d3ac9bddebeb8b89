"""What people are shown: heartbeats of the dead and wrong clocks do not make jobs run."""

from __future__ import annotations

import asyncio

import pytest

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.journal import make_record
from monkey.protocol.layout import Keys
from monkey.protocol.status.store_snapshot import JobState, SnapshotReader
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import append_order, append_revision
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.store.memory import MemoryStore
from tests.signing import SIGNERS

KEYS = Keys("p")
JOB = "0" * 16
REVISION = Revision("s", Recipe("true", "c" * 64), SweepSettings(), JobTable([JOB], {"x": ParameterColumn([1], [0])}))
NOW = 1e9


class Clock:
    """A clock that says what it is told."""

    def __init__(self, wall: float) -> None:
        self.at = wall

    def now(self) -> float:
        return 100.0

    def wall(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here sleeps")


def heart(store: MemoryStore, boot: str, wall: float = NOW) -> HeartbeatWriter:
    return HeartbeatWriter(store, KEYS.beat(f"local/vm/{boot}"), Clock(wall))


async def dead_and_successor(store: MemoryStore, wall: float) -> None:
    """The first agent died with the job in hand; its successor ran it, and it failed."""
    await append_revision(store, KEYS, SIGNERS, REVISION, 0)
    dead = heart(store, "a", wall)
    dead.held.add((KEYS.job_log(JOB), 1))
    await dead.beat()
    await store.put(f"{KEYS.job_log(JOB)}00000001", Claim("local/vm/a", 1, 1, "s").encode())
    await store.put(f"{KEYS.job_log(JOB)}00000002", Claim("local/vm/b", 1, 1, "s").encode())
    end = EndEntry(ClaimEnd.FAILED, "local/vm/b", 1, "s", "exit code 3", 3, out=2)
    await store.put(f"{KEYS.job_log(JOB)}00000003", end.encode())
    successor = heart(store, "b")
    successor.journal.record(make_record(JOB, 3, end))
    await successor.beat()


@pytest.mark.parametrize("wall", [NOW - 5, NOW, NOW + 5, NOW + 3600])
def test_a_heartbeat_that_is_older_than_the_jobs_end_does_not_make_it_run(wall: float) -> None:
    async def look() -> None:
        store = MemoryStore()
        await dead_and_successor(store, wall)
        view = (await SnapshotReader(store, KEYS, SIGNERS, lambda: NOW).read()).sweeps["s"]
        assert view.where(JOB) is JobState.FAILED
        assert view.jobs[JOB].reason == "exit code 3"
        assert (view.jobs[JOB].host, view.jobs[JOB].agent) == ("vm", None), "where it ran; no agent has it now"
        assert view.unfinished == 0

    asyncio.run(look())


def test_an_agent_whose_clock_is_wrong_is_alive_once_its_heart_was_seen_to_beat() -> None:
    async def look() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        wrong = heart(store, "a", NOW + 3600)
        wrong.held.add((KEYS.job_log(JOB), 1))
        reader = SnapshotReader(store, KEYS, SIGNERS, lambda: NOW)
        await wrong.beat()
        assert not (await reader.read()).alive("local")
        await wrong.beat()
        seen = await reader.read()
        assert [agent.id for agent in seen.alive("local")] == ["local/vm/a"]
        assert seen.sweeps["s"].where(JOB) is JobState.RUNNING
        wrong.vitals = lambda: {"idle": [JOB]}
        await wrong.beat()
        assert (await reader.read()).sweeps["s"].where(JOB) is JobState.QUEUED, "claimed ahead"
        assert await wrong.beat(left=True)
        assert not (await reader.read()).alive("local")

    asyncio.run(look())


def test_an_agent_that_drains_lives_beside_its_successor() -> None:
    async def look(draining: bool) -> tuple[set[str], JobState]:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        old, new = heart(store, "a", NOW - 5), heart(store, "b")
        old.held.add((KEYS.job_log(JOB), 1))
        old.vitals = lambda: {"draining": draining}
        await old.beat()
        await new.beat()
        seen = await SnapshotReader(store, KEYS, SIGNERS, lambda: NOW).read()
        return {agent.id for agent in seen.alive("local")}, seen.sweeps["s"].where(JOB)

    assert asyncio.run(look(True)) == ({"local/vm/a", "local/vm/b"}, JobState.RUNNING)
    assert asyncio.run(look(False)) == ({"local/vm/b"}, JobState.QUEUED)


def test_what_a_lost_agent_said_last_of_a_job_is_shown_until_another_has_it() -> None:
    async def look() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        await append_order(store, KEYS, SIGNERS, "s", "cancel")
        released = EndEntry(
            ClaimEnd.RELEASED, "local/vm/a", 1, "s", "paused", metrics={"loss": {"last": 9}}, seconds=5.0
        )
        lost, metrics = heart(store, "a", NOW - 1000), {"loss": {"last": 0.5}}
        lost.journal.record(make_record(JOB, 2, released))
        lost.held.add((KEYS.job_log(JOB), 3))
        lost.vitals = lambda: {"running": [{"job": JOB, "sweep": "s", "began": NOW - 1007, "metrics": metrics}]}
        await lost.beat()
        reader = SnapshotReader(store, KEYS, SIGNERS, lambda: NOW)
        job = (await reader.read()).sweeps["s"].jobs[JOB]
        assert (job.state, job.attempt, job.reason) == (JobState.CANCELLED, 3, "its agent was lost")
        assert (job.metrics, job.seconds) == (metrics, 12.0)
        # Another agent has it, and has nothing to tell of it yet.
        other = heart(store, "b")
        other.held.add((KEYS.job_log(JOB), 4))
        await other.beat()
        job = (await reader.read()).sweeps["s"].jobs[JOB]
        assert (job.state, job.attempt, job.agent, job.reason) == (JobState.RUNNING, 4, "local/vm/b", None)

    asyncio.run(look())
