"""The agent's ports: what its protocol core needs of the machine, a clock and a runner of attempts.

`execution.runner.LocalRunner` and `machine.MachineClock` are the real ones; the simulation has its own of both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from monkey.protocol.clock import Clock
from monkey.protocol.record.end_files import EndFiles
from monkey.protocol.record.history_parts import HistoryPart
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.protocol.record.shipment import Piece
from monkey.spec.job.counted_resources import CountedResources
from monkey.spec.job.job_table import ParameterValue
from monkey.spec.job.recipe import JobResources, Recipe, SweepSettings
from monkey.spec.job.stop_when import StopEvidence

__all__ = ["Attempt", "AttemptEnd", "AttemptOutcome", "Clock", "LiveAttempt", "Runner", "Slot", "SlotGrant", "SlotPort"]


@dataclass(frozen=True)
class Slot:
    """The room of one job on the machine; `memory` in bytes, 0 if none was asked; `gpus` as in CUDA_VISIBLE_DEVICES."""

    cpus: float
    gpus: tuple[str, ...]
    memory: int
    #: Thousandths of each of its GPUs that are its own.
    part: int = 1000
    #: What it has of resources that are only counted.
    counted: CountedResources = ()
    #: A small number that no other running job of the machine has.
    number: int = 0


class SlotPort(Protocol):
    """The slots of the machine, which fill its capacity."""

    @property
    def lacking(self) -> str:
        """Return, in words, why no job can begin here now; "" if jobs can."""

    @property
    def held_up(self) -> str:
        """Return, in words, which jobs have waited for long, as other agents hold the machine; "" for none.

        A job of which another that asks for the same runs here is not among them.
        """

    @property
    def wanted_by_others(self) -> bool:
        """Return whether another agent of this machine waits for room."""

    def take(self, resources: JobResources) -> Slot | None:
        """Return a slot, or None when none is free now."""

    @property
    def held_by_others(self) -> bool:
        """Return whether the last slot that was asked for is free but for what other agents hold, or wait for."""

    def wait(self, resources: JobResources) -> None:
        """Say to the others that a job waits for such a slot; the dispatcher is to be called again soon."""

    def give(self, slot: Slot) -> None:
        """Give a slot back."""

    def fits(self, resources: JobResources) -> bool:
        """Return whether the machine could ever have such a slot."""


class SlotGrant(NamedTuple):
    """The grant of a slot to an attempt, and when it may begin."""

    slot: Slot
    #: The attempt that has the slot now: ours begins when it has exited by itself; None: at once.
    after: LiveAttempt | None = None


@dataclass(frozen=True)
class Attempt:
    """One try at a job: the claim at position `k` of the job's log, the `number`-th that began (1 is the first)."""

    job: str
    k: int
    sweep: str
    recipe: Recipe
    settings: SweepSettings
    parameters: dict[str, ParameterValue]
    number: int
    #: Position from which on all claims are of this machine's agent, in this life or an earlier one.
    ours_since: int
    #: Names of secrets that sweeps declared: the agent's own variables of these names are withheld from the job.
    withheld: frozenset[str] = frozenset()
    #: The agent that runs it: "fleet/name/boot".
    agent: str = ""
    #: The attempts before it.
    earlier: tuple[AttemptRecord, ...] = ()
    #: Who applied the revision that it runs under.
    user: str = ""
    #: The finished job that it runs once more, to be compared; "" for none.
    checks: str = ""
    #: The newest entry of its sweep's log when it was claimed, of those that changed anything: a retry, perhaps.
    ordered: int = 0


class AttemptEnd(StrEnum):
    """The way in which an attempt ended."""

    SUCCEEDED = "succeeded"
    #: The job failed by itself, or timed out.
    FAILED = "failed"
    #: The agent ended it, as it met a condition of `stop_when`.
    MET = "met"
    #: The agent was asked to stop it.
    STOPPED = "stopped"
    #: Its processes were killed from outside; that says nothing about the job.
    LOST = "lost"


@dataclass(frozen=True)
class AttemptOutcome:
    """The outcome of an attempt. All that it names is in the store, durably, but for `files`."""

    ending: AttemptEnd
    #: For people: "exit code 1", "killed by SIGSEGV", "timed out after 2h"; "" for a success.
    reason: str = ""
    #: As of a shell: 128 + signal where a signal ended the job; None where nothing was started, or it is not known.
    exit_code: int | None = None
    #: Of its history, and of what it logged itself.
    summary: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: The earlier attempts that it continued.
    history: tuple[HistoryPart, ...] = ()
    #: The newest attempt at the job that has a checkpoint in the store (itself, or one before it); 0 for none.
    checkpoint: int = 0
    #: Path below outputs/ to SHA-256, 64 hex.
    outputs: dict[str, str] = field(default_factory=dict)
    #: Its usage of the machine, as `monkey.metrics.usage` returns it; {} where that is not known.
    usage: dict[str, float] = field(default_factory=dict)
    #: The last 100 lines of stdout and stderr; empty for a success.
    log_tail: list[str] = field(default_factory=list)
    #: Seconds that it ran, without those in which it was frozen.
    seconds: float = 0.0
    #: Evidence that a condition of `stop_when` was met; for a success, only of a condition that ends the sweep.
    met: StopEvidence | None = None
    #: Its files that its end is to hold, and nothing in the store has; None for none.
    files: EndFiles | None = None
    #: Hash of what its result came from (`monkey.protocol.record.facts`); "" where that is not known.
    facts: str = ""


class LiveAttempt(Protocol):
    """An attempt whose process was started.

    It runs while two things hold: the deadline of `Runner.renew` is in the future, and it is not frozen. Calls of
    freeze, thaw and renew take effect in their order: a job that must not continue is frozen before the deadline moves.
    """

    @property
    def begun(self) -> bool:
        """Return whether the job was started; one that follows another first waits for its turn."""

    def begin(self) -> None:
        """Start the job if it still waits for its turn."""

    def freeze(self) -> None:
        """Freeze all processes of the job (SIGSTOP); returns at once, and may be called again."""

    def thaw(self) -> None:
        """Let the job continue, unless the deadline of `Runner.renew` has passed."""

    async def stop(self, reason: str) -> None:
        """Ask all processes of the job to end (SIGTERM), and kill them after settings.grace seconds (SIGKILL).

        A frozen job is killed at once: it has no right to run, not even to clean up. Returns when its processes are
        gone; `wait` then returns STOPPED with this reason, unless the job ended before.
        """

    async def wait(self) -> AttemptOutcome:
        """Return the outcome when the job has ended, its other processes are killed, and its results are in the store.

        The results are durable then. If our agent is killed after the job's exit and before `leave`, its successor does
        not start the job again, but continues from here. Raises StoreError where the store does not take the results:
        the attempt stays, and `wait` may be called again.
        """

    def progress(self) -> dict[str, dict[str, Any]]:
        """Return the metrics' summary so far; {} if there is none. Cheap."""

    def usage(self) -> dict[str, float]:
        """Return the attempt's usage of the machine so far; {} if it is not known yet. Cheap."""

    async def keep_files(self) -> None:
        """Bring the outcome's `files` to the store: no end holds them. Raises StoreError, and may be called again."""

    @property
    def merged(self) -> bool:
        """Return whether nothing of what the job wrote needs its agent's shipment."""

    def leave(self, *, recorded: bool) -> None:
        """Give back what the attempt used of the machine, as its outcome is not needed any more.

        `recorded`: its end is in the job's log. So a success also removes what only another attempt would need.
        """


class Runner(Protocol):
    """The runner of attempts on this machine."""

    async def start(self, attempt: Attempt, turn: Callable[[], Awaitable[SlotGrant | None]]) -> LiveAttempt | None:
        """Prepare a workspace, wait for the attempt's turn, and start the job's process.

        `turn` is awaited right before the launch, since a workspace or an environment may take minutes. Where it
        returns None, or the deadline of `renew` has passed, nothing is launched, and None is returned. A job that
        exited in an earlier life of the agent, and may have run nowhere since, is not started again. The attempt that
        is returned then continues from its exit.

        Raises JobFailed with the reason where the job cannot run here: broken code snapshot, environment that does not
        build, command not found, disk full. Raises MachineFault where this machine alone is the reason, and StoreError
        where the store does not give the snapshot. A caller that is cancelled while it waits leaves nothing running.
        Work for it alone (an environment, a dataset) is given up.
        """

    def renew(self, deadline: float) -> None:
        """Let jobs run until `Clock.now()` reaches `deadline`; the supervisor freezes them then, whatever we do.

        When the deadline is in the future again, the supervisor thaws the jobs that it froze itself, but not those that
        `freeze` froze.
        """

    #: Set by the agent: brings all that running attempts wrote by now to the store, durably. Raises StoreError.
    ship: Callable[[], Awaitable[None]]

    def take_unshipped(self, most: int) -> Iterable[Piece]:
        """Yield up to `most` bytes of what running attempts wrote and was not taken before. Cheap.

        All metrics come before any log: a checkpoint waits for metrics, and a log may grow faster than it is shipped.
        """

    async def close(self) -> None:
        """Kill all jobs that still run, and give back all that is held. No job is started afterwards."""
