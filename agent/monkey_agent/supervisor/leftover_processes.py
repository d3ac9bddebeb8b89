"""What an agent left running when it died together with its supervisor. Its successor ends that before it begins."""

from __future__ import annotations

import os
import time
from pathlib import Path

from monkey.errors import FleetError
from monkey.processes import process_tree
from monkey.processes.process_tree import KILL
from monkey_agent.machine import MachineClock, read_boot_id
from monkey_agent.supervisor.shared_state import GUARD, SharedState

#: Seconds in which a supervisor or guard that outlived its agent kills the jobs itself: it knows more of them than we.
GRACE = 3.0
#: Seconds that killed processes may take to go.
_PATIENCE_SECONDS = 30.0
#: How far the kernel's record of a process's start may be from the clock around its launch, in seconds.
SLACK = 0.05


def clear_leftovers(state: Path, *, builds: bool = True) -> int:
    """Kill everything that earlier agents of this state directory left; the caller holds its lock, or is the agent.

    `builds`: also builds of environments; an agent that lives wants to keep its own.
    Returns how many processes that were. Raises FleetError where some do not go: to work beside them would be to run
    jobs twice.
    """
    entries = _entries(state)
    _await_end([entry for entry in entries[: GUARD + 1] if entry[0]], GRACE)
    killed: set[int] = set()
    until = time.monotonic() + _PATIENCE_SECONDS
    while left := _left(state, entries, builds):
        killed.update(left)
        for pid in left:
            process_tree.send_signal(pid, KILL)
            if not process_tree.HAS_PROC:
                process_tree.send_group(pid, KILL)
        if time.monotonic() > until:
            raise FleetError(
                f"processes {', '.join(map(str, sorted(left)))} of an earlier agent do not end, though killed",
                hint="they may wait for a disk or a network share that does not answer; restart the machine",
            )
        time.sleep(0.005)
    return len(killed)


def read_exits(state: Path) -> dict[str, tuple[int, int, float, int]]:
    """Return how attempts exited whose end may not be recorded: name to (worth, code, seconds, peak), as noted."""
    try:
        register = SharedState(str(state / "register"))
    except (OSError, ValueError):  # none, or not one of ours
        return {}
    try:
        return register.exits() if register.boot == read_boot_id() else {}
    finally:
        register.close()


def _entries(state: Path) -> list[tuple[int, float, float]]:
    try:
        register = SharedState(str(state / "register"))
        entries = register.entries() if register.boot == read_boot_id() else []
    except (OSError, ValueError):  # none, or not one of ours
        return []
    register.close()
    return entries


def _await_end(entries: list[tuple[int, float, float]], seconds: float) -> None:
    until = time.monotonic() + seconds
    while any(map(_is, entries)) and time.monotonic() < until:
        time.sleep(0.005)


def _is(entry: tuple[int, float, float]) -> bool:
    """Say whether the process of an entry lives: the one that was started then, not one that has its pid now."""
    pid, before, after = entry
    born = process_tree.read_start_time(pid)
    if born is None:
        return not process_tree.HAS_PROC and _alive_since(pid, before, after)
    return before - SLACK <= born <= after + SLACK and not process_tree.is_dead(pid)


def _left(state: Path, entries: list[tuple[int, float, float]], builds: bool) -> list[int]:
    """Return what is left: what the register names, what is marked as ours, and all below it. Never ourselves."""
    roots = [entry[0] for entry in entries if entry[0] and _is(entry)]
    if process_tree.HAS_PROC:
        roots += [pid for pid in process_tree.list_processes() if _marked(pid, state, builds)]
    found = {*roots, *process_tree.list_descendants(roots)} - {os.getpid()}
    return [pid for pid in found if not process_tree.HAS_PROC or not process_tree.is_dead(pid)]


def _marked(pid: int, state: Path, builds: bool) -> bool:
    whose, _, key = (process_tree.read_mark(pid) or "").rpartition(":")
    return whose == str(state) and (builds or key.partition(".")[0] != process_tree.BUILD)


def _alive_since(pid: int, before: float, after: float) -> bool:
    """Without /proc: ask ps how long it lives (to the second)."""
    import subprocess

    run = subprocess.run(["ps", "-o", "etime=,stat=", "-p", str(pid)], capture_output=True, text=True)
    fields = run.stdout.split()
    if len(fields) < 2 or fields[1].startswith("Z"):
        return False
    days, _, clock = fields[0].rpartition("-")
    age = 0
    for part in clock.split(":"):
        age = age * 60 + int(part)
    born = MachineClock().now() - age - 86400 * int(days or 0)
    return before - 2 <= born <= after + 2
