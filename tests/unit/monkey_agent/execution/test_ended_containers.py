"""Jobs in containers that the agent ends, or that still run: what that says of their runtime.

podman is a double here; `runtime_doubles` says why.
"""

from __future__ import annotations

import pytest

from monkey.errors import MachineFault
from monkey_agent.containers.runtime_faults import RuntimeFaults
from monkey_agent.execution.running_attempt import RunningAttempt
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import until
from tests.unit.monkey_agent.containers.image_body import ImageBody
from tests.unit.monkey_agent.containers.runtime_doubles import DIGEST, IMAGE, WORKS, fail


def test_a_job_whose_runtime_hung_until_its_timeout_is_released(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        machine.podman.does("echo Error: waiting for a lock >&2; exec sleep 1000")
        outcome = await machine.run(["/bin/true"], settings={**IMAGE, "timeout": 0.5, "grace": 0.1})
        assert outcome.ending is AttemptEnd.STOPPED, outcome
        why = "podman could not start the container (timed out after 0.5s): Error: waiting for a lock"
        assert outcome.reason == why, outcome
        with pytest.raises(MachineFault, match="it is tried again after 1m"):
            await machine.run(["/bin/true"])

    run(scenario())


def test_what_a_person_stops_before_it_began_is_no_fault_of_a_runtime(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        machine.podman.does("exec sleep 1000")
        running = await machine.start(["/bin/true"], image=DIGEST, settings={**IMAGE, "grace": 0.1})
        await until(lambda: machine.podman.asked)
        await running.stop("cancelled")
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason) == (AttemptEnd.STOPPED, "cancelled")
        running.leave(recorded=True)
        machine.podman.does(WORKS)
        assert (await machine.run(["/bin/true"])).ending is AttemptEnd.SUCCEEDED, "others of its image do not rest"

    run(scenario())


def test_a_job_that_times_out_in_its_container_has_failed(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        begun = machine.place / "begun"
        more = {"image": DIGEST, "settings": {**IMAGE, "timeout": 1000.0, "grace": 0.1}}
        running = await machine.start(["sh", "-c", f"touch {begun}; exec sleep 1000"], **more)
        await until(begun.exists)
        running.timed_out()  # as its clock does, which runs while a slow machine still starts it
        await running._end()
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason) == (AttemptEnd.FAILED, "timed out after 16m40s"), outcome
        running.leave(recorded=True)

    run(scenario())


async def begin_after_fault(machine: ImageBody) -> RunningAttempt:
    """Have the runtime fail, and then begin a job that stays; return that."""
    now = 0.0
    machine.runner.needs._faults = RuntimeFaults(lambda: now)
    machine.podman.does(fail(125, "Error: no control groups"))
    await machine.run(["/bin/true"])
    now = 60.0
    machine.podman.does(WORKS)
    begun = machine.place / "begun"
    settings = {**IMAGE, "grace": 0.1}
    running = await machine.start(["sh", "-c", f"touch {begun}; exec sleep 1000"], image=DIGEST, settings=settings)
    await until(begun.exists)
    return running


async def assert_fault_is_first(machine: ImageBody) -> None:
    """Have the runtime fail again, which is to count as its first fault."""
    machine.podman.does(fail(125, "Error: no control groups"))
    await machine.run(["/bin/true"])
    with pytest.raises(MachineFault, match="it is tried again after 1m"):
        await machine.run(["/bin/true"])


def test_a_container_that_began_and_was_stopped_ends_the_pauses(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        running = await begin_after_fault(machine)
        await running.stop("paused")
        await running.wait()
        running.leave(recorded=True)
        await assert_fault_is_first(machine)

    run(scenario())


def test_a_container_that_runs_ends_the_pauses_with_its_next_sample(machine: ImageBody, run: Run) -> None:
    async def scenario() -> None:
        running = await begin_after_fault(machine)
        machine.runner.sampler.begin()
        await machine.runner.sampler.sample()
        await assert_fault_is_first(machine)
        await running.stop("paused")
        await running.wait()
        running.leave(recorded=True)

    run(scenario())
