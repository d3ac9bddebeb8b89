"""The guard: what a supervisor launched ends with the supervisor, whoever killed it, and with whom."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.processes import process_tree
from monkey_agent.ports import AttemptEnd
from monkey_agent.supervisor import leftover_processes
from tests.loops import Run
from tests.unit.monkey_agent.body import (
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

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a subreaper")


def held(pid: int) -> list[str]:
    """Return what a process holds open beside the standard streams."""
    return [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() if int(fd.name) > 2]


def inheritable(pid: int) -> set[str]:
    """Return the descriptors of a process that a program which it starts has as well."""
    found = set()
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        flags = re.search(r"^flags:\s*(\d+)", entry.read_text(), re.MULTILINE)
        if not int(flags[1], 8) & os.O_CLOEXEC:
            found.add(entry.name)
    return found


def test_agent_and_supervisor_killed_together_leave_nothing(victim: Callable[..., int], tmp_path: Path) -> None:
    with hard_to_end(victim, tmp_path) as (agent, jobs):
        supervisor, guard = supervisor_of(tmp_path / "state"), guard_of(tmp_path / "state")
        os.kill(supervisor, signal.SIGSTOP)  # so that it cannot do it itself
        os.kill(agent, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
        asyncio.run(until(lambda: not any(map(alive, [*jobs, supervisor, guard])), seconds=2.0))


@pytest.mark.parametrize("order", list(itertools.permutations(("agent", "guard", "supervisor"))), ids="-".join)
@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
def test_jobs_end_whoever_ends_all_that_is_called_after_monkey(
    victim: Callable[..., int], tmp_path: Path, order: tuple[str, ...], frozen: bool
) -> None:
    with hard_to_end(victim, tmp_path) as (agent, jobs):
        state = tmp_path / "state"
        ours = {"agent": agent, "guard": guard_of(state), "supervisor": supervisor_of(state)}
        # As one who does not know us would find them.
        found = subprocess.run(["pgrep", "-f", f"monkey.*{tmp_path}"], capture_output=True, text=True, check=True)
        assert set(map(int, found.stdout.split())) - set(jobs) == set(ours.values())
        keeper = keeper_of(state)
        if frozen:
            for pid in jobs:
                os.kill(pid, signal.SIGSTOP)
        for name in order:
            with contextlib.suppress(ProcessLookupError):  # it may have ended with the one before
                os.kill(ours[name], signal.SIGKILL)
        asyncio.run(until(lambda: not any(map(alive, [*jobs, *ours.values(), keeper]))))


def test_without_its_keeper_everything_ends(victim: Callable[..., int], tmp_path: Path) -> None:
    with hard_to_end(victim, tmp_path) as (_, jobs):
        state = tmp_path / "state"
        keeper, others = keeper_of(state), [guard_of(state), supervisor_of(state)]
        os.kill(keeper, signal.SIGKILL)
        asyncio.run(until(lambda: not any(map(alive, [*jobs, *others, keeper]))))


def test_a_fork_bomb_does_not_outlive_its_supervisor(victim: Callable[..., int], tmp_path: Path) -> None:
    lines = ["import os, time", "for i in range(4): os.fork()", "while 1:", "  p = os.fork()"]
    lines += ["  if p == 0: os.setsid(); time.sleep(.05); os._exit(0)", "  os.waitpid(p, 0)"]
    (tmp_path / "bomb.py").write_text("\n".join(lines))
    agent = victim(f"exec env -i {sys.executable} {tmp_path}/bomb.py")
    supervisor, keeper = supervisor_of(tmp_path / "state"), keeper_of(tmp_path / "state")
    asyncio.run(until(lambda: len(process_tree.list_descendants([supervisor])) > 16))
    os.kill(agent, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # without its agent it ends by itself
        os.kill(supervisor, signal.SIGKILL)
    asyncio.run(until(lambda: not alive(keeper), seconds=5.0))  # it ends last
    assert leftover_processes.clear_leftovers(tmp_path / "state") == 0
    asyncio.run(until(lambda: not alive(agent)))  # its arguments name the bomb, and a disk may hold up its end
    lines = [process_tree.read_proc(f"/proc/{pid}/cmdline") for pid in process_tree.list_processes()]
    assert not [line for line in lines if f"{tmp_path}/bomb.py".encode() in line]


def test_a_daemon_that_hides_ends_with_a_supervisor_that_is_killed(body: Body, tmp_path: Path, run: Run) -> None:
    plain, hidden = tmp_path / "plain", tmp_path / "hidden"

    async def scenario() -> None:
        with killed_after(plain, hidden):
            running = await body.start(["sh", "-c", HIDDEN.format(hidden) + STAY.format(plain)])
            jobs = await until(lambda: pids(plain, hidden))
            os.kill(supervisor_of(body.state), signal.SIGKILL)
            assert (await running.wait()).ending is AttemptEnd.LOST
            assert not any(map(alive, jobs))
            assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED

    run(scenario())


def test_without_its_guard_a_supervisor_ends_its_jobs_and_another_goes_on(body: Body, tmp_path: Path, run: Run) -> None:
    plain, hidden = tmp_path / "plain", tmp_path / "hidden"

    async def scenario() -> None:
        with killed_after(plain, hidden):
            running = await body.start(["sh", "-c", HIDDEN.format(hidden) + STAY.format(plain)])
            jobs = await until(lambda: pids(plain, hidden))
            supervisor, guard = supervisor_of(body.state), guard_of(body.state)
            os.kill(guard, signal.SIGKILL)
            assert (await running.wait()).ending is AttemptEnd.LOST
            assert not any(map(alive, [*jobs, supervisor, guard]))
            assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED
            assert guard_of(body.state) not in (0, guard)

    run(scenario())


def test_the_guard_holds_nothing_and_heeds_no_polite_signal(body: Body, run: Run) -> None:
    async def scenario() -> None:
        await body.run("true")
        guard = guard_of(body.state)
        (pipe,) = held(guard)
        assert pipe.startswith("pipe:")
        assert not held(keeper_of(body.state))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(guard, number)
        assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED
        assert guard_of(body.state) == guard
        # Nor do jobs inherit that.
        assert (await body.run(["sh", "-c", "kill -TERM $$; sleep 1000"])).reason == "killed by SIGTERM"
        await body.runner.close()
        assert not alive(guard)

    run(scenario())


def test_a_supervisor_hands_none_of_its_descriptors_on(body: Body, run: Run) -> None:
    # ctypes of many Pythons opens a file that programs inherit: libffi before 3.5.2 asks for no other.
    async def scenario() -> None:
        await body.run("true")
        handed = inheritable(supervisor_of(body.state))
        assert handed == {"0", "1", "2"}

    run(scenario())
