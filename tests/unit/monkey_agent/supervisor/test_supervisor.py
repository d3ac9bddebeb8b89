"""The supervisor: jobs die with their agent, stand still without its word, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.processes import process_tree
from monkey_agent.machine import MachineClock
from monkey_agent.ports import AttemptEnd
from monkey_agent.supervisor import leftover_processes
from tests.loops import Run
from tests.unit.monkey_agent.body import (
    DAEMON,
    HIDDEN,
    STAY,
    Body,
    alive,
    guard_of,
    hard_to_end,
    keeper_of,
    killed_after,
    pids,
    supervisor_of,
    until,
)

#: Without /proc only process groups are known, and daemons get away.
knows_all = pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")

#: Appends to FILE for ever.
GROW = "while :; do echo x >> {0}; sleep 0.01; done"


@knows_all
def test_jobs_are_gone_within_a_second_of_their_agent(victim: Callable[..., int], tmp_path: Path) -> None:
    with hard_to_end(victim, tmp_path) as (agent, jobs):
        supervisor = supervisor_of(tmp_path / "state")
        assert all(map(alive, [*jobs, supervisor]))
        os.kill(agent, signal.SIGKILL)
        asyncio.run(until(lambda: not any(map(alive, [*jobs, supervisor])), seconds=1.0))


@knows_all
def test_a_fork_bomb_does_not_outlive_its_agent(victim: Callable[..., int], tmp_path: Path) -> None:
    lines = ["import os, time", "for i in range(6): os.fork()", "while 1:", "  p = os.fork()"]
    lines += ["  if p == 0: time.sleep(.05); os._exit(0)", "  os.waitpid(p, 0)"]
    bomb = "\n".join(lines)
    (tmp_path / "bomb.py").write_text(bomb)
    agent = victim(f"exec {sys.executable} {tmp_path}/bomb.py")
    supervisor, keeper = supervisor_of(tmp_path / "state"), keeper_of(tmp_path / "state")
    asyncio.run(until(lambda: len(process_tree.list_descendants([supervisor])) > 60))
    os.kill(agent, signal.SIGKILL)
    asyncio.run(until(lambda: not alive(supervisor), seconds=3.0))
    asyncio.run(until(lambda: not alive(keeper)))  # it ends last, and has nothing to do
    assert leftover_processes.clear_leftovers(tmp_path / "state") == 0


@knows_all
def test_a_successor_ends_what_agent_supervisor_and_guards_left(victim: Callable[..., int], tmp_path: Path) -> None:
    plain, daemon, below, other = (tmp_path / name for name in ("plain", "daemon", "below", "other"))
    # Somebody else's process, with a mark that only begins like ours.
    stranger = {**os.environ, process_tree.MARK: f"{tmp_path}/state2:1"}
    decoy = subprocess.Popen(["sh", "-c", STAY.format(other)], env=stranger, start_new_session=True)
    with killed_after(plain, daemon, below, other):
        hidden_below = f"env -i PATH=\"$PATH\" sh -c '{STAY.format(below)}'; :"
        agent = victim(STAY.format(plain), DAEMON.format(daemon) + "sleep 1000", hidden_below)
        jobs = asyncio.run(until(lambda: pids(plain, daemon, below)))
        asyncio.run(until(lambda: pids(other)))
        supervisor = supervisor_of(tmp_path / "state")
        guard = guard_of(tmp_path / "state")
        keeper = keeper_of(tmp_path / "state")
        for pid in (keeper, guard, supervisor):
            os.kill(pid, signal.SIGSTOP)
        for pid in (agent, keeper, guard, supervisor):
            os.kill(pid, signal.SIGKILL)
        asyncio.run(until(lambda: not alive(supervisor) and not alive(guard)))
        assert all(map(alive, jobs)), "the test must leave something to clear"
        assert leftover_processes.clear_leftovers(tmp_path / "state") >= len(jobs)
        assert not any(map(alive, jobs))
        assert decoy.poll() is None
        decoy.kill()
        decoy.wait()


def test_a_recycled_pid_is_not_killed(tmp_path: Path) -> None:
    from monkey_agent.machine import read_boot_id
    from monkey_agent.supervisor.shared_state import SharedState

    bystander = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    now = MachineClock().now()
    SharedState.create(str(tmp_path / "register"), read_boot_id()).enter(bystander.pid, now - 100, now - 99, 2)
    assert leftover_processes.clear_leftovers(tmp_path) == 0
    assert bystander.poll() is None
    SharedState.create(str(tmp_path / "register"), read_boot_id()).enter(bystander.pid, now - 1, now + 1, 2)
    assert leftover_processes.clear_leftovers(tmp_path) == 1
    assert bystander.wait() == -signal.SIGKILL


@knows_all
def test_jobs_stand_still_when_the_deadline_passes_and_go_on_when_it_is_renewed(
    body: Body, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "grows"
    daemon = tmp_path / "daemon-grows"

    async def scenario() -> None:
        command = f"(setsid sh -c '{GROW.format(daemon)}' &) ; {GROW.format(file)}"
        running = await body.start(["sh", "-c", command])
        await until(lambda: file.exists() and daemon.exists())
        body.runner.renew(body.runner.clock.now() + 0.2)
        size = await _stands_still(file, daemon)
        body.runner.renew(body.runner.clock.now() + 3600)
        await until(lambda: file.stat().st_size > size[0] and daemon.stat().st_size > size[1])
        await running.stop("enough")
        assert (await running.wait()).ending is AttemptEnd.STOPPED

    run(scenario())


async def _stands_still(*files: Path) -> list[int]:
    """Wait until files that grow every 10 ms did not for half a second."""
    last, since = [0], time.monotonic()
    while time.monotonic() - since < 0.5:
        sizes = [file.stat().st_size for file in files]
        if sizes != last:
            last, since = sizes, time.monotonic()
        await asyncio.sleep(0.02)
    return last


def test_what_was_frozen_stays_frozen_when_the_deadline_moves(body: Body, tmp_path: Path, run: Run) -> None:
    held, free = tmp_path / "held", tmp_path / "free"

    async def scenario() -> None:
        one, two = [await body.start(["sh", "-c", GROW.format(file)]) for file in (held, free)]
        await until(lambda: held.exists() and free.exists())
        body.runner.renew(body.runner.clock.now())
        await _stands_still(held, free)
        one.freeze()
        body.runner.renew(body.runner.clock.now() + 3600)
        size = free.stat().st_size
        await until(lambda: free.stat().st_size > size)
        size = (await _stands_still(held))[0]
        one.thaw()
        await until(lambda: held.stat().st_size > size)
        for running in (one, two):
            await running.stop("enough")

    run(scenario())


def test_thawing_does_not_pass_the_deadline(body: Body, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "grows"

    async def scenario() -> None:
        running = await body.start(["sh", "-c", GROW.format(file)])
        await until(file.exists)
        running.freeze()
        await _stands_still(file)
        body.runner.renew(body.runner.clock.now())
        running.thaw()
        size = await _stands_still(file)
        body.runner.renew(body.runner.clock.now() + 3600)
        await until(lambda: file.stat().st_size > size[0])
        await running.stop("enough")

    run(scenario())


def test_a_frozen_job_is_killed_without_a_word(body: Body, tmp_path: Path, run: Run) -> None:
    ready, last_words = tmp_path / "ready", tmp_path / "last-words"

    async def scenario() -> None:
        command = f"trap 'touch {last_words}; exit' TERM; touch {ready}; while :; do sleep 0.01; done"
        running = await body.start(["sh", "-c", command], settings={"grace": 60})
        await until(ready.exists)
        running.freeze()
        began = time.monotonic()
        await running.stop("another has it")
        assert time.monotonic() - began < 30  # and not the grace
        outcome = await running.wait()
        assert (outcome.ending, outcome.reason) == (AttemptEnd.STOPPED, "another has it")
        assert not last_words.exists()

    run(scenario())


def test_nothing_is_launched_after_the_deadline(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        await body.run("true")
        # The supervisor's own check: the agent's is passed by.
        body.runner._deadline = body.runner.clock.now() + 3600
        body.runner._launcher.renew(body.runner.clock.now() - 1)
        outcome = await body.run(["touch", str(tmp_path / "began")])
        assert outcome.ending is AttemptEnd.STOPPED
        assert not (tmp_path / "began").exists()

    run(scenario())


@knows_all
def test_what_a_job_leaves_behind_ends_with_it(body: Body, tmp_path: Path, run: Run) -> None:
    child, daemon, hidden = (tmp_path / name for name in ("child", "daemon", "hidden"))

    async def scenario() -> None:
        with killed_after(child, daemon, hidden):
            wait = "".join(f"while ! [ -e {file} ]; do sleep 0.01; done; " for file in (child, daemon, hidden))
            command = f"(sh -c '{STAY.format(child)}' &) ; " + DAEMON.format(daemon) + HIDDEN.format(hidden) + wait
            outcome = await body.run(["sh", "-c", command])
            assert outcome.ending is AttemptEnd.SUCCEEDED
            assert not any(map(alive, pids(child, daemon, hidden)))

    run(scenario())


@knows_all
def test_what_another_job_made_is_left_alone(body: Body, tmp_path: Path, run: Run) -> None:
    daemon, hidden = tmp_path / "daemon", tmp_path / "hidden"

    async def scenario() -> None:
        with killed_after(daemon, hidden):
            first = await body.start("sleep 1000")
            other = await body.start(
                ["sh", "-c", DAEMON.format(daemon) + HIDDEN.format(hidden) + "sleep 1000"], settings={"grace": 0.1}
            )
            made = await until(lambda: pids(daemon, hidden))
            assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED
            await first.stop("enough")
            assert all(map(alive, made))
            await other.stop("enough")
            await body.run("true")
            assert not any(map(alive, made))

    run(scenario())


@knows_all
def test_who_hides_and_loses_its_shell_is_asked_and_awaited_beside_an_older_job(
    body: Body, tmp_path: Path, run: Run
) -> None:
    ready, saved = tmp_path / "ready", tmp_path / "saved"
    hides = f"trap 'sleep 0.5; touch {saved}; exit' TERM; touch {ready}; while :; do sleep 0.01; done"
    command = f'true\nenv -i PATH="$PATH" setsid -w sh -c {shlex.quote(hides)}\ntrue'

    async def scenario() -> None:
        older = await body.start("sleep 1000")
        running = await body.start(["sh", "-c", command], settings={"grace": 30})
        await until(ready.exists)
        await running.stop("enough")
        assert saved.exists()
        await older.stop("enough")

    run(scenario())


@knows_all
def test_when_the_supervisor_dies_its_jobs_do_and_another_goes_on(body: Body, tmp_path: Path, run: Run) -> None:
    plain, daemon = tmp_path / "plain", tmp_path / "daemon"

    async def scenario() -> None:
        with killed_after(plain, daemon):
            running = await body.start(["sh", "-c", DAEMON.format(daemon) + STAY.format(plain)])
            jobs = await until(lambda: pids(plain, daemon))
            os.kill(supervisor_of(body.state), signal.SIGKILL)
            assert (await running.wait()).ending is AttemptEnd.LOST
            assert not any(map(alive, jobs))
            assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED

    run(scenario())


def test_the_signals_that_end_an_agent_do_not_end_its_supervisor(body: Body, run: Run) -> None:
    async def scenario() -> None:
        await body.run("true")
        supervisor = supervisor_of(body.state)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(supervisor, number)
        assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED
        assert supervisor_of(body.state) == supervisor
        # Nor do jobs inherit that.
        outcome = await body.run(["sh", "-c", "kill -TERM $$; sleep 1000"])
        assert outcome.reason == "killed by SIGTERM"

    run(scenario())


def test_closing_kills_what_runs(body: Body, tmp_path: Path, run: Run) -> None:
    plain = tmp_path / "plain"

    async def scenario() -> None:
        await body.start(["sh", "-c", STAY.format(plain)])
        (job,) = await until(lambda: pids(plain))
        supervisor = supervisor_of(body.state)
        await body.runner.close()
        assert not alive(job)
        assert not alive(supervisor)

    run(scenario())
