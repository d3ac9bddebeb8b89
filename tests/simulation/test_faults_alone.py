"""Unexpected errors of one attempt, of a listener, or of what is told and shipped: they cost no other job anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from monkey.protocol.claims import HeldClaim
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.record.shipment import Piece
from monkey.spec.job.recipe import SweepSettings
from monkey_agent.ports import Attempt, AttemptOutcome
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.attempts import AttemptListener
from tests.simulation.body import KEYS, Execution, job_id
from tests.simulation.life import Life
from tests.simulation.mutant import Mutant
from tests.simulation.net import Host
from tests.simulation.story import Story, revision
from tests.simulation.test_protocol import QUIET
from tests.simulation.world import Weather, World

JOBS = range(20, 26)
ODD = job_id(22)


class Unexpected(Exception):
    """An error of a kind that no code knows."""


class DeafListener(AttemptListener):
    """A listener that can take nothing."""

    def attempt_began(self, work: ActiveAttempt) -> None:
        raise Unexpected("began")

    def attempt_started(self) -> None:
        raise Unexpected("started")

    def slot_vacated(self, work: ActiveAttempt) -> bool:
        raise Unexpected("vacated")

    def end_recorded(self, work: ActiveAttempt, held: HeldClaim, end: EndEntry) -> None:
        raise Unexpected("recorded")

    def attempt_over(self, work: ActiveAttempt, held: HeldClaim | None) -> None:
        raise Unexpected("over")


class OddExecution(Execution):
    """An attempt of which one thing goes wrong."""

    fault = ""

    def progress(self) -> dict[str, dict[str, Any]]:
        if self.fault == "progress":
            raise Unexpected("progress")
        return super().progress()

    async def wait(self) -> AttemptOutcome:
        outcome = await super().wait()
        if self.fault == "wait":
            raise Unexpected("wait")
        return replace(outcome, summary={"loss": {"last": object()}}) if self.fault == "summary" else outcome

    def leave(self, *, recorded: bool) -> None:
        super().leave(recorded=recorded)
        if self.fault == "leave":
            raise Unexpected("leave")


def live(prepare: Any) -> tuple[World, list[str]]:
    """Let an agent run six jobs, one of them odd, after `prepare` made something of it odd; returns what it said."""
    world = World(1, Weather(**{**QUIET, "jobs": (20, 60)}, agents=1, outage=(0, 0), calm_from=0.001))
    asyncio.set_event_loop(world.loop)
    said: list[str] = []

    async def run() -> None:
        await Story(world).apply(revision("a", JOBS, SweepSettings(providers=["f"], max_retries=0)))
        world.hosts.append(Host(world, "h0"))
        life = world.current["h0"] = Life(world, world.hosts[0], Mutant())
        life.agent.errors.say = said.append
        prepare(life)
        await asyncio.sleep(600)
        assert not life.main.done() and life.agent._failure is None
        life.agent.stop()
        await asyncio.wait([life.main], timeout=300)
        assert life.main.done()

    world.run(run())
    assert not world.violations
    return world, said


def ends(world: World) -> dict[str, ClaimEnd]:
    """Return how each job ended."""
    tails = {job: world.log(KEYS.job_log(job)).tail for job in map(job_id, JOBS)}
    return {job: tail.outcome for job, tail in tails.items() if isinstance(tail, EndEntry)}


@pytest.mark.parametrize("fault", ["progress", "wait", "summary", "leave"])
def test_what_goes_wrong_with_one_attempt_costs_the_others_nothing(fault: str) -> None:
    def prepare(life: Life) -> None:
        def make(attempt: Attempt) -> Execution:
            execution = OddExecution(life.body, attempt)
            execution.fault = fault if attempt.job == ODD else ""
            return execution

        life.body.make = make

    world, said = live(prepare)
    odd = ClaimEnd.FAILED if fault in ("wait", "summary") else ClaimEnd.SUCCEEDED
    assert ends(world) == {job_id(n): ClaimEnd.SUCCEEDED for n in JOBS} | {ODD: odd}
    assert sum("Traceback" in line for line in said) == 1 and ODD in said[-1]


def test_a_listener_that_can_take_nothing_harms_no_job() -> None:
    world, said = live(lambda life: life.agent.attempts.listeners.insert(0, DeafListener()))
    assert ends(world) == {job_id(n): ClaimEnd.SUCCEEDED for n in JOBS}
    assert {line.split(": ")[2].split("\n")[0] for line in said} == {"began", "started", "vacated", "recorded", "over"}


def test_what_cannot_be_told_or_shipped_harms_no_job() -> None:
    def refuse(most: int) -> Iterable[Piece]:
        raise Unexpected("ship")

    def tell() -> dict[str, Any]:
        raise Unexpected("vitals")

    def prepare(life: Life) -> None:
        life.body.take_unshipped = refuse
        life.agent.beats.more_vitals = tell

    world, said = live(prepare)
    assert ends(world) == {job_id(n): ClaimEnd.SUCCEEDED for n in JOBS}
    assert len(said) == 2
