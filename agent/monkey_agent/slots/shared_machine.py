"""Agents that share this machine: after an update, the old one's jobs continue beside the new one until they end.

Each writes what its jobs hold into its own directory. An agent that knows another's directory hands none of that
out, for as long as an agent holds the lock there.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.fleet.agent_state import is_agent_alive

#: The file, in an agent's directory.
_SLOTS_FILE = "slots.json"
#: Seconds for which an answer holds.
_FRESH = 0.5


@dataclass(frozen=True)
class TakenResources:
    """What jobs hold of a machine: how many they are, thousandths of CPUs, bytes of memory, GPUs."""

    slots: int = 0
    cpus: int = 0
    memory: int = 0
    gpus: tuple[str, ...] = ()

    def __add__(self, other: TakenResources) -> TakenResources:
        """Return what both hold."""
        slots, cpus = self.slots + other.slots, self.cpus + other.cpus
        return TakenResources(slots, cpus, self.memory + other.memory, self.gpus + other.gpus)


def write_slots(directory: Path, taken: TakenResources) -> None:
    """Write down what the jobs of the agent of this directory hold; errors are ignored."""
    with contextlib.suppress(OSError):
        write_atomically(directory / _SLOTS_FILE, json.dumps(asdict(taken)))


class SharedMachine:
    """The agents that were there before, so long as they live."""

    def __init__(self, directories: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        """Look into these agents' directories."""
        self._directories, self._clock = list(directories), clock
        self._known, self._since = TakenResources(), float("-inf")

    def taken(self) -> TakenResources:
        """Return what their jobs hold now."""
        if self._directories and self._clock() - self._since > _FRESH:
            self._directories = [directory for directory in self._directories if is_agent_alive(directory)]
            self._known = sum(map(_told, self._directories), TakenResources())
            self._since = self._clock()
        return self._known


def _told(directory: Path) -> TakenResources:
    try:
        said = json.loads((directory / _SLOTS_FILE).read_bytes())
        return TakenResources(int(said["slots"]), int(said["cpus"]), int(said["memory"]), tuple(map(str, said["gpus"])))
    except (OSError, ValueError, KeyError, TypeError):
        return TakenResources()  # it has not started any job
