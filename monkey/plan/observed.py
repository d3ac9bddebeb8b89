"""What is: sweeps as they were applied last, how far their jobs are, who works. A value, read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from monkey.plan.commits.seen_commit import SeenCommit
from monkey.plan.desired import UploadSize
from monkey.spec.job.job_table import JobTable
from monkey.spec.job.recipe import EarlierRecipe, Recipe, SweepSettings
from monkey.spec.job.stop_when import StopEvidence

#: How the reason begins for which `--prune` cancels a sweep.
PRUNED = "its spec left git"


class AppliedRevision(Protocol):
    """The newest revision of a sweep; `monkey.protocol.sweeps.revision.Revision` is one."""

    @property
    def recipe(self) -> Recipe: ...
    @property
    def settings(self) -> SweepSettings: ...
    @property
    def table(self) -> JobTable: ...
    @property
    def code_files(self) -> Mapping[str, str]: ...
    @property
    def git(self) -> Mapping[str, Any] | None: ...
    @property
    def spec_text(self) -> str: ...
    @property
    def source(self) -> str:
        """The spec's path in the repository."""

    @property
    def author(self) -> str: ...
    @property
    def at(self) -> str: ...
    @property
    def force(self) -> str: ...
    @property
    def restores(self) -> int: ...
    @property
    def adopted(self) -> Mapping[str, str]:
        """Job to the finished job whose result it adopts."""

    @property
    def plan(self) -> str:
        """The digest of the plan that it was part of; "" where that is not known."""

    @property
    def strict(self) -> bool:
        """Whether who applied it could know that scripts stop where a part fails."""


@dataclass(frozen=True)
class ObservedSweep:
    """One sweep of the store. The sets hold ids of the newest revision's jobs; what is in none of them is queued.

    A job that adopts another's result has succeeded.
    """

    #: Entries in its log.
    head: int
    applied: AppliedRevision | None = None
    #: Which entry `applied` is.
    applied_at: int = 0
    #: A later commit that wanted just the same.
    seen: SeenCommit | None = None
    #: The last entry that changed anything: the number that a plan is bound to. None: the last of all.
    last_change: int | None = None
    #: Was it applied by nobody who is trusted here? Then no machine of ours runs it.
    foreign: bool = False
    paused: bool = False
    #: Why it was cancelled; None where it was not.
    cancelled: str | None = None
    #: Who cancelled it; "" where that is not known. And was that a person?
    cancelled_by: str = ""
    cancelled_by_person: bool = False
    #: What was applied before a rollback, where `applied` is one.
    undone: AppliedRevision | None = None
    #: Was it cancelled by its own `stop_when`?
    goal: bool = False
    succeeded: AbstractSet[str] = frozenset()
    failed: AbstractSet[str] = frozenset()
    #: Jobs that met a condition of its `stop_when`, and what met it.
    stopped: Mapping[str, StopEvidence] = field(default_factory=dict)
    running: AbstractSet[str] = frozenset()
    #: Did one of `failed` fail because the store does not have its data, or has it damaged?
    lacks_data: bool = False
    #: When it expires, seconds since the epoch; None for never. `over`: it has, or is about to.
    expires: float | None = None
    over: bool = False
    #: Fleets that were never told of the newest revision's work (an apply was cut short).
    unmarked: tuple[str, ...] = ()

    @property
    def known_git(self) -> Mapping[str, Any] | None:
        """The newest commit that it is known to stand for, as `GitInfo` has it."""
        return self.seen.git if self.seen else self.applied.git if self.applied else None

    @property
    def known_author(self) -> str:
        """Who applied that commit."""
        return self.seen.author if self.seen else self.applied.author if self.applied else ""

    @property
    def known_spec(self) -> str:
        """The spec as that commit has it."""
        return (self.seen.spec_text if self.seen else "") or (self.applied.spec_text if self.applied else "")

    @property
    def changed_at(self) -> int:
        """The last entry that changed anything."""
        return self.head if self.last_change is None else self.last_change

    @property
    def active(self) -> bool:
        """May its jobs run now?"""
        return self.applied is not None and not self.paused and self.cancelled is None and not self.over

    @property
    def pruned(self) -> bool:
        """Was it cancelled because its spec was gone? Then it comes back when its spec does."""
        return self.cancelled is not None and self.cancelled.startswith(PRUNED)

    @property
    def unfinished(self) -> int:
        """How many of its jobs are still to be run, or running."""
        ended = len(self.succeeded) + len(self.failed) + len(self.stopped)
        return len(self.applied.table) - ended if self.applied else 0


@dataclass(frozen=True)
class ObservedProject:
    """The project's part of the store."""

    sweeps: Mapping[str, ObservedSweep] = field(default_factory=dict)
    #: Jobs of the whole project, of whatever sweep and revision, that have succeeded.
    finished: AbstractSet[str] = frozenset()
    #: Hashes of the code snapshots that are in the store, of those that the desired sweeps ask for.
    code: AbstractSet[str] = frozenset()
    #: Fleet to the number of its agents that are alive.
    agents: Mapping[str, int] = field(default_factory=dict)
    #: The store's own identity (in its `format`), "" where there is none yet.
    store: str = ""
    #: Hash of a dataset to what of it is missing in the store; one that is not here is missing whole.
    datasets: Mapping[str, UploadSize] = field(default_factory=dict)
    #: Sweep to what changed within its datasets, by their names: "3 of 10,000 files".
    within: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: When this was seen, seconds since the epoch.
    at: float = 0.0
    #: Job to the job whose result stands for it, by the project's log of adoptions; that one may be adopted, too.
    adoptions: Mapping[str, str] = field(default_factory=dict)
    #: Earlier code and later code that a spec declared to be the same, and that results were adopted for.
    codes: AbstractSet[tuple[str, str]] = frozenset()
    #: The recipes of all revisions of all sweeps; those of one sweep in their order.
    recipes: Sequence[EarlierRecipe] = ()
    #: Sentences about what of the store could not be read, and was skipped.
    problems: tuple[str, ...] = ()
    #: The project's name.
    project: str = ""
    #: Desired sweep to those of its jobs that have failed for good by the settings that it is to have, or were stopped,
    #: whichever sweep and revision ran them: agents do not run them for it before it retries them.
    failed: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    #: Those of all these that were stopped: they met a condition of `stop_when`.
    met: AbstractSet[str] = frozenset()
