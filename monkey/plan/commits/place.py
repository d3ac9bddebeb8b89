"""The place of a commit: is it newer than what was applied? Facts in, verdict out; git is asked elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class CommitPlace(StrEnum):
    """The place of this commit, seen from the one that was applied last."""

    #: It descends from the applied one, or there is nothing to compare it with.
    AHEAD = "ahead"
    SAME = "same"
    #: The applied one is of another branch, and what it wanted was merged into this one: by squash, or by rebase.
    MERGED = "merged"
    #: The applied one is newer; or it is of the same branch, which was rewritten, or has moved on elsewhere.
    BEHIND = "behind"
    #: The applied one is of another branch, and is not merged into this one.
    APART = "apart"
    #: The clone is shallow or partial, so it lacks the commits or the files that would tell.
    UNKNOWN = "unknown"

    @property
    def refused(self) -> bool:
        """Return whether an apply must not put this commit in the place of the other."""
        return self in (CommitPlace.BEHIND, CommitPlace.APART, CommitPlace.UNKNOWN)


class CommitAncestry(StrEnum):
    """What git says of the applied commit and of this one."""

    #: The applied one is an ancestor of this one; a descendant of it; neither; or this clone does not have it.
    ANCESTOR = "ancestor"
    DESCENDANT = "descendant"
    NEITHER = "neither"
    MISSING = "missing"


@dataclass(frozen=True)
class AppliedCommit:
    """The newest commit that a sweep is known to stand for."""

    commit: str
    #: None where it is not known, as in a CI that does not tell.
    branch: str | None = None
    author: str = ""


@dataclass(frozen=True)
class CurrentCommit:
    """The commit that is checked out, with what its history says of the applied one."""

    commit: str
    branch: str | None
    ancestry: CommitAncestry
    #: The branch that specs are applied from; None where it is not known.
    tracked: str | None = None
    shallow: bool = False
    #: Does the clone lack the files of earlier commits, and may it not fetch them?
    partial: bool = False
    #: Was there a commit with the applied spec and code in this history, since it parted from the applied commit?
    has_content: bool = False


class Refusal(NamedTuple):
    """Why an apply leaves a sweep as it is, in words, and what to do."""

    text: str
    hint: str

    @property
    def line(self) -> str:
        """Return both as one line."""
        return f"{self.text} ({self.hint})"


def place_commit(applied: AppliedCommit | None, now: CurrentCommit | None) -> CommitPlace:
    """Return where the current commit stands; None for either: it is not known, and so stops nothing.

    The same branch comes before the content. A branch may go from A to B and back to A. A late run of B then has the
    content of the applied A in its history, and is not newer.
    """
    if applied is None or now is None or now.ancestry is CommitAncestry.ANCESTOR:
        same = applied is not None and now is not None and applied.commit == now.commit
        return CommitPlace.SAME if same else CommitPlace.AHEAD
    if applied.commit == now.commit:
        return CommitPlace.SAME
    if now.ancestry is CommitAncestry.DESCENDANT:
        return CommitPlace.BEHIND
    if now.shallow:
        return CommitPlace.UNKNOWN
    if applied.branch is None or now.branch is None or applied.branch == now.branch:
        return CommitPlace.BEHIND
    # What is on the branch that all start from is not merged into another by its content: that may be an older state.
    if now.tracked is None or applied.branch == now.tracked:
        return CommitPlace.APART
    if now.has_content:
        return CommitPlace.MERGED
    return CommitPlace.UNKNOWN if now.partial else CommitPlace.APART


def explain_place(place: CommitPlace, applied: AppliedCommit, now: CurrentCommit) -> Refusal | None:
    """Return why an apply from such a place is refused; None where it is not."""
    if not place.refused:
        return None
    commit, ours = applied.commit[:10], now.commit[:10]
    branch = f" of branch {applied.branch}" if applied.branch else ""
    by = f" by {applied.author}" if applied.author else ""
    last = f"refused: last applied{by} from commit {commit}{branch}"
    on_purpose = "or go back on purpose with `monkey apply --force REASON`"
    if place is CommitPlace.UNKNOWN and not now.shallow:
        why = f"and this clone is partial: whether that is merged into {ours} is not known"
        return Refusal(f"{last}, {why}", "run `git fetch --refetch --no-filter`, or clone without --filter")
    if place is CommitPlace.UNKNOWN:
        why = f"and this clone is shallow: whether {ours} descends from it is not known"
        return Refusal(f"{last}, {why}", "run `git fetch --unshallow`; in CI, clone with full history (fetch-depth: 0)")
    if now.ancestry is CommitAncestry.DESCENDANT:
        return Refusal(f"{last}, which is newer than this one ({ours})", f"`git pull` first; {on_purpose}")
    if place is CommitPlace.BEHIND:
        why = f"and this one ({ours}) does not descend from it"
        return Refusal(f"{last}, {why}", f"`git pull` first; {on_purpose}")
    why = f"which is not merged into this one ({ours})"
    merge = "merge it first; or take over with `monkey apply --force REASON`"
    if now.tracked is None:
        name = "name the branch that specs are merged into: `git: {branch: main}` in monkey.yaml"
        merge = f"{name}; if it is not merged, {merge}"
    return Refusal(f"{last}, {why}", merge)
