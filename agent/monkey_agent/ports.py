"""What the agent's protocol core asks of the machine that it runs on: a clock, and somebody who runs attempts.

`runner.LocalRunner` and `machine.MachineClock` are the real ones; the simulation has its own of both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from monkey.protocol.clock import Clock
from monkey.spec.job.job_table import ParameterValue
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.spec.job.stop_when import StopEvidence

__all__ = ["Attempt", "AttemptEnd", "AttemptOutcome", "Clock", "LiveAttempt", "Runner", "Slot", "SlotGrant"]


@dataclass(frozen=True)
class Slot:
    """What an attempt may use of the machine; `memory` in bytes, 0 for none asked; `gpus` as CUDA_VISIBLE_DEVICES."""

    cpus: float
    gpus: tuple[str, ...]
    memory: int


class SlotGrant(NamedTuple):
    """When an attempt may begin, and with what of the machine."""

    slot: Slot
    #: It begins when this one, which has the slot now, has exited by itself; None: at once.
    after: LiveAttempt | None = None


@dataclass(frozen=True)
class Attempt:
    """One try at a job: the claim at position `k` of the job's log, the `number`-th try (1 is the first)."""

    job: str
    k: int
    sweep: str
    recipe: Recipe
    settings: SweepSettings
    parameters: dict[str, ParameterValue]
    number: int
    #: From this position on, all claims are of this machine's agent, in this life or an earlier one.
    ours_since: int
    #: Names of secrets that other sweeps declared: the agent's own variables of these names are not for this job.
    withheld: frozenset[str] = frozenset()


class AttemptEnd(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    #: The job's own doing, a timeout included.
    FAILED = "failed"
    #: We ended it: it met a condition of `stop_when`.
    MET = "met"
    #: We asked it to stop.
    STOPPED = "stopped"
    #: Something took its processes away under us; it says nothing about the job.
    LOST = "lost"


@dataclass(frozen=True)
class AttemptOutcome:
    """What became of an attempt. Everything it names is in the store, durably."""

    ending: AttemptEnd
    #: For people: "exit code 1", "killed by SIGSEGV", "timed out after 2h"; "" for a success.
    reason: str = ""
    #: As a shell would say it: 128 + signal where a signal ended it; None where nothing was started or it is not known.
    exit_code: int | None = None
    summary: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Path below outputs/ to SHA-256, 64 hex.
    outputs: dict[str, str] = field(default_factory=dict)
    #: What it used of the machine, as `monkey.metrics.usage` has it; {} where that is not known.
    usage: dict[str, float] = field(default_factory=dict)
    #: The last 100 lines of stdout and stderr; empty for a success.
    log_tail: list[str] = field(default_factory=list)
    #: Seconds that it ran, those that it was frozen not counted.
    seconds: float = 0.0
    #: What met a condition of `stop_when`; of a success, only one that ends the sweep.
    met: StopEvidence | None = None


class LiveAttempt(Protocol):
    """An attempt whose process was started.

    It runs while two things hold: the deadline of `Runner.renew` is in the future, and it is not frozen. Calls of
    freeze, thaw and renew take effect in their order: what must not continue is frozen before the deadline moves.
    """

    @property
    def begun(self) -> bool:
        """Has it left the line? One that follows another waits for its turn."""

    def begin(self) -> None:
        """Say that it is its turn, if it still waits."""

    def freeze(self) -> None:
        """Stop everything of the job where it stands (SIGSTOP); returns at once, and may be called again."""

    def thaw(self) -> None:
        """Let it continue, unless the deadline of `Runner.renew` has passed."""

    async def stop(self, reason: str) -> None:
        """Ask everything of the job to end (SIGTERM), after settings.grace end it (SIGKILL).

        A job that is frozen is killed at once: it has no right to run, not even to say goodbye. Returns when its
        processes are gone; `wait` then says STOPPED with this reason, unless it ended before.
        """

    async def wait(self) -> AttemptOutcome:
        """Return when the process has ended, what it left behind is killed, and what it made is in the store, synced.

        From the moment when it exited, and until `leave`, an agent that comes after ours was killed does not start the
        job again, but continues from here. Raises StoreError where the store does not take it: the attempt stays, and
        `wait` may be called again.
        """

    def progress(self) -> dict[str, dict[str, Any]]:
        """Return the metrics' summary so far; {} if there is none. Cheap."""

    def usage(self) -> dict[str, float]:
        """Return what it used of the machine so far; {} if it is not known yet. Cheap."""

    def leave(self, *, recorded: bool) -> None:
        """Give back what it used of the machine: nobody will ask how it ended.

        `recorded`: its end is in the job's log, so of a success, what only another attempt would need goes as well.
        """


class Runner(Protocol):
    """Runs attempts on this machine."""

    async def start(self, attempt: Attempt, turn: Callable[[], Awaitable[SlotGrant | None]]) -> LiveAttempt | None:
        """Prepare a workspace, wait for the attempt's turn, and start the job's process.

        `turn` is awaited right before the launch (a workspace or an environment may take minutes): where it gives none,
        or the deadline of `renew` is past, nothing is launched and None returned. An attempt that exited in an earlier
        life of the agent, and may have run nowhere since, is not started again: what is returned continues from there.
        Raises JobFailed with the reason
        where it cannot run here: broken code snapshot, environment that does not build, command not found, disk full;
        StoreError where the store does not give the snapshot. A caller that is cancelled while it waits leaves nothing
        that runs: what is made for it alone (an environment, a dataset) is given up.
        """

    def renew(self, deadline: float) -> None:
        """Let jobs run until `Clock.now()` reaches `deadline`; the supervisor freezes them then, whatever we do.

        When the deadline is in the future again, the supervisor thaws what it froze itself, but not what `freeze` did.
        """

    def follow(self, on: bool) -> None:
        """Say whether a user watches: logs are then shipped every second instead of every 30."""

    async def close(self) -> None:
        """Kill whatever still runs, and give back what is held. Nothing is started afterwards."""
