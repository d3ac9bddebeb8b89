"""Agents of this user on this machine, of whatever project: they share its CPUs, memory and GPUs.

Each writes what its jobs hold, and which jobs wait for room, into its state directory; those lie beside each other.
One that begins writes the file at once, and takes nothing until the others have seen it. From then on, each writes what
it takes, and then looks at the others. So at least one of two sees that both took the same. The agent that has the
smallest part of the machine goes first, then the one that has waited longest. A job may begin before if it leaves room
for the one that waits: what waits for a GPU holds back no job without one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from monkey.fleet.agent_state import is_agent_alive
from monkey_agent.machine import MachineClock, read_boot_id
from monkey_agent.slots.shared_machine import SLOTS_FILE, AgentSlots, read_slots

#: Seconds for which the list of agents holds, and what they said; and after which one waits no more that does not ask.
LISTED, _FRESH, WAITS = 0.5, 0.5, 5.0
#: Directories in which state directories of agents lie, three levels below: a user's own, and those of hosts.
_ROOTS = ("monkey", "hosts")
#: Variables by which an engine gives an agent a part of a machine: then nothing of it is shared.
_ALLOCATED = ("MONKEY_CPUS", "MONKEY_MEMORY", "SLURM_JOB_ID", "SLURM_CPUS_ON_NODE")


class MachineAgents:
    """The other agents of this user that live on this machine."""

    def __init__(self, own: Path, known: Sequence[Path] = (), clock: Callable[[], float] | None = None) -> None:
        """Look for state directories beside `own`, as deep as that, less those that are `known` otherwise.

        `clock`: that of the machine since its boot.
        """
        self._own, self._passed, self.clock = own, {own, *known}, clock or MachineClock().now
        places = own.parent.parent.parent.name in _ROOTS
        self.machine = identify_machine(os.environ) if places else ""
        self._listed = self._looked = float("-inf")
        self._directories: list[Path] = []
        self._known: list[AgentSlots] = []

    def look(self, *, again: bool = False) -> list[AgentSlots]:
        """Return what the others hold; `again`: as they say it right now."""
        now = self.clock()
        if not self.machine or (not again and now - self._looked <= _FRESH):
            return self._known
        if now - self._listed > LISTED:
            # One that began since then sees us, and takes nothing before we see it.
            self._directories, self._listed = self._list(), now
        told = [read_slots(directory) for directory in self._directories if is_agent_alive(directory)]
        self._known = [_drop_old(said, now) for said in told if said.machine == self.machine]
        self._looked = now
        return self._known

    def _list(self) -> list[Path]:
        found = (path.parent for path in self._own.parents[2].glob(f"*/*/*/{SLOTS_FILE}"))
        return [directory for directory in found if directory not in self._passed]


def _drop_old(said: AgentSlots, now: float) -> AgentSlots:
    return replace(said, waiting=tuple(job for job in said.waiting if now - job.tried < WAITS))


def identify_machine(environ: Mapping[str, str]) -> str:
    """Return what agents that share CPUs and memory have in common; "" where an engine gave us a part of its own.

    A home may be on several machines, or in several containers, and agents may be bound to CPUs of their own.
    """
    if any(environ.get(name) for name in _ALLOCATED) or not (boot := read_boot_id()):
        return ""
    affinity = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        space = ""
    return hashlib.sha256(f"{boot} {space} {affinity}".encode()).hexdigest()[:16]
