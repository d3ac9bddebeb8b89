"""What should have been run: one spec of the project, expanded, with its code hashed. A value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from monkey.plan.commits.place import CommitPlace, Refusal
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.job_table import JobTable
from monkey.spec.job.recipe import Recipe, SweepSettings


class UploadSize(NamedTuple):
    """What is to be sent to the store."""

    bytes: int = 0
    objects: int = 0


@dataclass(frozen=True)
class DesiredSweep:
    """One sweep as its spec wants it."""

    name: str
    #: The spec's path in the repository.
    source: str
    recipe: Recipe
    settings: SweepSettings
    #: With its ids.
    table: JobTable
    #: Path to SHA-256 of every file of the code snapshot.
    code_files: Mapping[str, str] = field(default_factory=dict)
    #: The directory that these paths begin in, as the spec names it.
    code_root: str = "."
    #: Size of the code snapshot's files; its archive is compressed.
    code_bytes: int = 0
    #: Files of the snapshot that git does not track, though it lists the others.
    untracked: Sequence[str] = ()
    #: Path to reason of files that are no code because they may hold credentials.
    credentials: Mapping[str, str] = field(default_factory=dict)
    #: Name of each dataset to all of its bytes and objects.
    datasets: Mapping[str, UploadSize] = field(default_factory=dict)
    #: What `GitInfo` has, None outside a repository.
    git: Mapping[str, Any] | None = None
    #: Where that commit stands, seen from the one that was applied last; and why it may not take its place.
    place: CommitPlace = CommitPlace.AHEAD
    misplaced: Refusal | None = None
    #: The earlier revision whose content this is, where a person goes back to it; else 0.
    restores: int = 0
    #: Job of the table to the finished job that it runs once more; {} for all sweeps but checks.
    checks: Mapping[str, str] = field(default_factory=dict)
    #: What the spec declares to be no change, with lines.
    equivalences: Sequence[Equivalence] = ()
    #: What the spec's author should hear, though it stops nothing.
    warnings: tuple[str, ...] = ()
    #: What a plan says of it before all else: that it is a preview, and within which limits; "" for nothing.
    about: str = ""
    #: The spec's file; "" where the sweep is of none.
    spec_text: str = ""
