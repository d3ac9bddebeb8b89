"""`monkey-agent`: one agent, from the command line to its last heartbeat. Only this file exits."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from monkey.errors import MachineUnfit, MonkeyError, SigningError, StoreError, StoreFormat, StoreUnsafe
from monkey.fleet import environment_digest, incarnations
from monkey.fleet.agent_state import NO_WORK, TAKEN_BACK, UNFIT
from monkey.fleet.gpus import list_gpus, select_gpus
from monkey.fleet.machine_capacity import Capacity, format_count, measure_capacity
from monkey.fleet.user_directories import locate_agent_state, open_cache_home
from monkey.process_exit import exit_now
from monkey.processes.private_process import seal_memory
from monkey.protocol.layout import Keys
from monkey.signing.entry_signers import load_agent_signers, load_user_signers
from monkey.store.store_port import Store
from monkey_agent.arguments import parse_arguments
from monkey_agent.cache.eviction import CACHE_DIRECTORIES
from monkey_agent.containers.image_choice import ImageChoice
from monkey_agent.execution.runner import LocalRunner
from monkey_agent.lifecycle import draining
from monkey_agent.lifecycle.job_points import JobPoints
from monkey_agent.lifecycle.mount_patience import leave_unmounted
from monkey_agent.lifecycle.state_directory import StateDirectory, explain_directory_failure, refuse_links
from monkey_agent.lifecycle.store_wait import open_late_store
from monkey_agent.machine import MachineClock, extend_file_limit
from monkey_agent.receiving.metric_sockets import remove_dead_sockets
from monkey_agent.scheduling.agent_daemon import PATIENCE_SECONDS, AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from monkey_agent.slots.busy_gpus import BusyGpus
from monkey_agent.slots.disk_space import DiskSpaceGuard
from monkey_agent.slots.machine_agents import MachineAgents
from monkey_agent.slots.mount_guard import MountGuard
from monkey_agent.slots.shared_machine import SharedMachine
from monkey_agent.slots.slot_allocator import SlotAllocator
from monkey_agent.supervisor import leftover_processes
from monkey_agent.telemetry.gpu_meter import GpuMeter
from monkey_agent.unexpected_errors import UnexpectedErrors

#: New objects after which cycles are looked for (Python's own: 700).
GARBAGE = 50_000
#: Signals that ask the agent to leave.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Errors that another try on this machine meets again.
_LASTING = (MachineUnfit, SigningError, StoreFormat, StoreUnsafe)


def _machine(asked: argparse.Namespace) -> Capacity:
    """Return what this machine has, less the GPUs that are not to be used."""
    machine = replace(measure_capacity(), counted=asked.resources)
    return replace(machine, gpus=_chosen(asked.gpus)) if isinstance(asked.gpus, frozenset) else machine


async def run_life(asked: argparse.Namespace) -> int | None:
    """Live one life. Return what to exit with; None where work came as it ended.

    Raises MonkeyError where it cannot begin, or continue.
    """
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, exit_now, TAKEN_BACK)  # until there is an agent, which then leaves
    store = await open_late_store(asked.store, PATIENCE_SECONDS + asked.idle_timeout, _say)
    try:
        return await _live(asked, store)
    finally:
        await store.close()


async def _live(asked: argparse.Namespace, store: Store) -> int | None:
    home = StateDirectory(asked.state or locate_agent_state(store.url, asked.project, asked.fleet, asked.name))
    leftover_processes.clear_leftovers(home.directory)
    remove_dead_sockets()
    identity = _identity(asked, home)
    signers = load_agent_signers(asked.signers) if asked.signers else load_user_signers()
    machine = _machine(asked)
    cache, errors = _open_cache(asked), UnexpectedErrors(_say)
    room = DiskSpaceGuard([home.directory, cache])
    runner = LocalRunner(
        store,
        Keys(asked.project),
        home.directory,
        cache,
        gpus=bool(machine.gpus),
        cache_size=asked.cache_size,
        machine=asked.name,
        images=ImageChoice(asked.runtime, asked.own_image),
        errors=errors,
        on_os_error=room.note,
    )
    slots = _make_slots(asked, machine, home.directory, mounts := MountGuard(asked.mounts, room))
    agent = AgentDaemon(store, identity, signers, MachineClock(), runner, slots, random.Random(), errors=errors)
    slots.on_room = runner.needs.runtimes.on_answer = agent.dispatcher.refill
    agent.dispatcher.find_lack, agent.dispatcher.find_rest = runner.needs.find_lack, runner.needs.find_rest
    _tell_more(agent, runner, asked.max_slots or int(machine.cpus))
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, _asked, agent, runner, asked.cloud)
    _say(f"agent {identity.agent} works for {store.url}, project {asked.project}: {_told(machine, asked.max_slots)}")
    runner.sampler.begin(gpus=GpuMeter() if machine.gpus else None)
    beside = [asyncio.create_task(chore) for chore in _chores(asked, agent, runner, home.directory, mounts)]
    try:
        await agent.run()
        if _judge_life(agent) == NO_WORK:  # a machine that is shut down asks it to leave, and is to start it again
            home.leave()
    finally:
        for task in beside:
            task.cancel()
        await runner.close()
        for path in (*runner.checkpoints.kept.stuck, *runner.spaces.stuck):
            _say(f"{path} could not be removed, and takes room")
        home.close()  # whoever is next need not wait for what follows
        await runner.telemetry.close()
    _say(f"agent {identity.agent} leaves")
    return None if agent.found_nothing and await _recalled(agent) else _judge_life(agent)


def _open_cache(asked: argparse.Namespace) -> Path:
    """Return the user's cache. Raises MachineUnfit for a link in it."""
    cache: Path = asked.cache or open_cache_home()
    refuse_links(cache, CACHE_DIRECTORIES, "--cache or XDG_CACHE_HOME")
    return cache


def _make_slots(asked: argparse.Namespace, machine: Capacity, home: Path, room: MountGuard) -> SlotAllocator:
    """Return the slots of this machine, which its agents share, but for GPUs on which others compute."""
    foreign = BusyGpus() if asked.gpus == "auto" and machine.gpus else None
    old, others = SharedMachine(asked.beside), MachineAgents(home, asked.beside)
    return SlotAllocator(machine, asked.max_slots, old, home, foreign, room, others)


def _judge_life(agent: AgentDaemon) -> int:
    """Return what an agent exits with after its life."""
    return TAKEN_BACK if agent.taken_back else 1 if agent.gave_up else NO_WORK


async def _recalled(agent: AgentDaemon) -> bool:
    """Say whether work came while the agent left because there was none.

    `apply` looks for agents after it queued work: either it sees that the agent is gone, or the agent sees the work.
    """
    try:
        return not agent.taken_back and await agent.queue.brought()
    except StoreError:
        return False


def _chores(
    asked: argparse.Namespace, agent: AgentDaemon, runner: LocalRunner, directory: Path, mounts: MountGuard
) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield what is done beside the protocol."""
    yield draining.drain_on_request(agent, directory)
    yield _tidy_store(agent.store)
    yield runner.sampler.run()
    if asked.cloud:
        from monkey_agent.lifecycle import cloud_notices  # an HTTP client, which nobody else needs: 12 ms

        yield leave_unmounted(agent, mounts)
        yield cloud_notices.record_heartbeats(agent, directory)
        yield cloud_notices.leave_on_notice(agent, asked.cloud, directory, runner.limit_grace)


async def _tidy_store(store: Store) -> None:
    """Remove what dead writers left in the store; a store that refuses is reported by what is written next."""
    with contextlib.suppress(MonkeyError):
        await store.remove_stale()


def _tell_more(agent: AgentDaemon, runner: LocalRunner, slots: int) -> None:
    """Send the states of jobs and the load of this machine to InfluxDB, and by heartbeats."""
    agent.beats.more_vitals = lambda: {
        **({"system": runner.sampler.vitals} if runner.sampler.vitals else {}),
        **runner.telemetry.vitals(),
    }
    points = JobPoints(runner.telemetry, agent, slots)
    agent.attempts.listeners.append(points)
    runner.sampler.on_samples = points.sampled
    runner.telemetry.wake()


def _asked(agent: AgentDaemon, runner: LocalRunner, cloud: str | None) -> None:
    if cloud:  # the machine goes down, and waits for nobody for long
        from monkey_agent.lifecycle import cloud_notices

        runner.limit_grace(cloud_notices.read_grace(cloud))
    agent.stop()


def _chosen(numbers: frozenset[int]) -> tuple[str, ...]:
    found = select_gpus(numbers)
    if len(found) < len(numbers):
        raise MachineUnfit(
            f"expected GPU{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))}, "
            f"found {len(list_gpus())} here",
            hint="`nvidia-smi -L` counts them",
        )
    return found


def _identity(asked: argparse.Namespace, home: StateDirectory) -> AgentIdentity:
    boot = secrets.token_hex(4)
    try:
        before = incarnations.record_life(home.directory, f"{asked.fleet}/{asked.name}/{boot}")
        environment_digest.record_environment(home.directory, f"{asked.fleet}/{asked.name}/{boot}")
    except OSError as exc:
        raise explain_directory_failure(home.directory, "written", exc) from exc
    times = asked.idle_timeout, asked.leave_at, asked.pilot_time
    images = ImageChoice(asked.runtime, asked.own_image)
    return AgentIdentity(asked.project, asked.fleet, asked.name, boot, before, *times, images, asked.lease)


def _told(machine: Capacity, slots: int | None) -> str:
    gpus, counted = format_count(len(machine.gpus), "GPU"), (f"{count} {name}" for name, count in machine.counted)
    told = ", ".join([f"{format_count(machine.cpus, 'CPU')}, {machine.memory / 2**30:.1f} GiB, {gpus}", *counted])
    return f"{told}, at most {format_count(slots, 'job')} at once" if slots else told


def _let_in() -> bool:
    """Wait until who started us tells where our log is; False where they went away without a word."""
    log = os.fsdecode(sys.stdin.buffer.read())
    if not log:
        return False
    for path, flags, targets in ((os.devnull, os.O_RDONLY, (0,)), (log, os.O_WRONLY | os.O_APPEND, (1, 2))):
        fd = os.open(path, flags)
        for target in targets:
            os.dup2(fd, target)
        os.close(fd)
    os.chdir(os.path.dirname(log))  # noqa: PTH120
    return True


def _say(line: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", file=sys.stderr, flush=True)


def run_agent(argv: Sequence[str] | None = None) -> None:
    """Run `monkey-agent`.

    Exits with a code of `monkey.fleet.agent_state`, 1 on other errors, 2 on a wrong command line.
    """
    seal_memory()
    extend_file_limit()
    asked = parse_arguments(argv)
    if asked.gate and not _let_in():
        return
    # Claims and ends make many small objects, and hardly a cycle: looking for those was a twentieth of a no-op job.
    gc.freeze()
    gc.set_threshold(GARBAGE)
    try:
        while (code := asyncio.run(run_life(asked))) is None:
            _say("work came as the agent left: it begins again")
    except MonkeyError as exc:
        _say(f"error: {exc.message}")
        if exc.hint:
            _say(f"hint: {exc.hint}")
        if os.environ.get("MONKEY_DEBUG"):
            raise
        exit_now(UNFIT if isinstance(exc, _LASTING) else 1)
    exit_now(code)


if __name__ == "__main__":
    run_agent()
