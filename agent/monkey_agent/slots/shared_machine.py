"""Agents that share this machine: after an update, the old one's jobs continue beside the new one until they end.

Each writes what its jobs hold into its own directory. An agent that knows another's directory hands none of that
out, for as long as an agent holds the lock there.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.fleet.agent_state import is_agent_alive
from monkey.spec.job.recipe import JobResources

#: The file, in an agent's directory.
SLOTS_FILE = "slots.json"
#: Seconds for which an answer holds.
_FRESH = 0.5


@dataclass(frozen=True)
class TakenResources:
    """What jobs hold of a machine: how many they are, amounts as `JobResources.amounts`, thousandths of GPUs."""

    slots: int = 0
    amounts: Mapping[str, int] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: TakenResources) -> TakenResources:
        """Return what both hold."""
        return TakenResources(self.slots + other.slots, _add(self.amounts, other.amounts), _add(self.gpus, other.gpus))

    def to_json(self) -> dict[str, Any]:
        """Return data that `read_slots` reads, earlier agents too."""
        counted = {name: amount for name, amount in self.amounts.items() if name not in ("cpus", "memory")}
        measured = {name: self.amounts.get(name, 0) for name in ("cpus", "memory")}
        return {"slots": self.slots, **measured, "gpus": dict(self.gpus), "counted": counted}


@dataclass(frozen=True)
class WaitingJob:
    """A job for which an agent has no room, as others hold it."""

    resources: JobResources
    #: By the machine's clock: since when it waits, and when the agent last tried.
    since: float
    tried: float


@dataclass(frozen=True)
class AgentSlots:
    """What an agent says of itself: what its jobs hold, and which wait."""

    taken: TakenResources = TakenResources()
    #: What agents that share a machine have in common; "" for none.
    machine: str = ""
    waiting: tuple[WaitingJob, ...] = ()


def write_slots(directory: Path, said: AgentSlots) -> None:
    """Write down what the agent of this directory says of itself; errors are ignored."""
    waiting = [{**asdict(job), "resources": job.resources.to_json()} for job in said.waiting]
    told = said.taken.to_json() | {"machine": said.machine, "waiting": waiting}
    with contextlib.suppress(OSError):
        write_atomically(directory / SLOTS_FILE, json.dumps(told))


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
            self._known = sum((read_slots(directory).taken for directory in self._directories), TakenResources())
            self._since = self._clock()
        return self._known


def read_slots(directory: Path) -> AgentSlots:
    """Return what an agent says of itself; nothing where it has not started any job."""
    try:
        said = json.loads((directory / SLOTS_FILE).read_bytes())
        gpus = said["gpus"]
        # Earlier agents name GPUs that are wholly taken.
        parts = (
            {str(gpu): int(part) for gpu, part in gpus.items()} if isinstance(gpus, dict) else dict.fromkeys(gpus, 1000)
        )
        amounts = {"cpus": said["cpus"], "memory": said["memory"], **said.get("counted", {})}
        taken = TakenResources(int(said["slots"]), {name: int(amount) for name, amount in amounts.items()}, parts)
        return AgentSlots(taken, str(said.get("machine", "")), tuple(map(_read_waiting, said.get("waiting", ()))))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return AgentSlots()


def _read_waiting(said: dict[str, Any]) -> WaitingJob:
    return WaitingJob(JobResources.from_json(said["resources"]), float(said["since"]), float(said["tried"]))


def _add(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *other)}
