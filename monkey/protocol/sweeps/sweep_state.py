"""A sweep as its logs say it is: revisions, orders (pause, resume, …) and commits seen, folded one by one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from monkey.errors import CorruptObject, NotFound
from monkey.plan.commits.seen_commit import SeenCommit
from monkey.protocol import entry_shape
from monkey.protocol.entry_log import LogTally
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.skipped_entries import NONE_SKIPPED, SkippedEntries
from monkey.protocol.sweeps.revision import Revision, decode_order
from monkey.signing.entry_signers import STRANGER, EntrySigners, Signer
from monkey.signing.errors import SignatureRefused
from monkey.signing.signed_entry import EntryPlace, hash_entries
from monkey.spec.job.recipe import EarlierRecipe

#: Seconds before a sweep expires, and its jobs' grace, in which they save what they have and are released; no more
#: than this share of all its time, for those that are given little.
SPARE, _SHARE = 300.0, 0.1


class StopPointer(NamedTuple):
    """An entry of a log of stops: after entry `at` of the sweep's log, the end of a job at position `k` ends the sweep.

    It says nothing that the job's log and the revision do not say: each reader checks it by both.
    """

    at: int
    job: str
    k: int


class ProvenStop(NamedTuple):
    """A pointer, and what the job's log amounts to up to the end that it names; None while there is no such end."""

    pointer: StopPointer
    tally: LogTally | None


@dataclass(frozen=True)
class SweepState:
    """A sweep as its logs say it is, up to entry `head` of its own."""

    name: str
    head: int = 0
    revision: Revision | None = None
    #: The entry that is the newest revision, and who signed it.
    revision_at: int = 0
    #: A later commit that wanted just what it wants; None where there was none.
    seen: SeenCommit | None = None
    #: The newest entry that changed anything; of `head` entries, the others only say what was seen, or do not count.
    changed_at: int = 0
    signer: Signer | None = None
    #: What the signature of the next entry covers of the entries up to `head`.
    digest: str = ""
    paused: bool = False
    #: Why it was cancelled; None when it was not.
    cancelled: str | None = None
    #: Who cancelled it; "" where that is not known.
    cancelled_by: str = ""
    #: What was applied before a rollback, if the newest revision is one: commits of then want that, and it holds.
    undone: Revision | None = None
    #: Job to the position in its own log from which its failures count (its last retry).
    retries: dict[str, int] = field(default_factory=dict)
    #: Ends (job, position) that fail_fast or stop_when has acted on: one is acted on once.
    acted: frozenset[tuple[str, int]] = frozenset()
    #: The end (job, position) for which it cancelled itself; None where people did.
    cause: tuple[str, int] | None = None
    #: Was it cancelled by its own `stop_when`?
    goal: bool = False
    #: It was, and was opened again: it is not ended so any more, as long as its `stop_when` stays.
    waived: bool = False
    #: When it expires, seconds since the epoch, UTC; None for never.
    expires: float | None = None
    #: The recipes of all revisions, for `equivalences`; the first one first, and no two alike in a row.
    recipes: tuple[EarlierRecipe, ...] = ()
    #: May a job's end have ended it: had a revision `fail_fast`, or such a condition? Then it has a log of stops.
    can_end_itself: bool = False
    #: The pointers of its log of stops, as far as it was read: up to number `stops_read`.
    stops: tuple[ProvenStop, ...] = ()
    stops_read: int = 0
    #: Entries that count for nothing: of the sweep's log, and of its log of stops.
    skipped_entries: SkippedEntries = NONE_SKIPPED
    skipped_stops: SkippedEntries = NONE_SKIPPED

    @property
    def skipped(self) -> SkippedEntries:
        """Return the entries of both logs that count for nothing."""
        return self.skipped_entries.merge(self.skipped_stops)

    @property
    def is_foreign(self) -> bool:
        """Is its newest revision one that only counts for who reads entries of strangers, too?"""
        return self.signer is not None and self.signer == STRANGER

    @property
    def version(self) -> tuple[int, tuple[ProvenStop, ...]]:
        """Return what differs between any two states of one sweep that differ."""
        return self.head, self.stops

    @property
    def active(self) -> bool:
        """May its jobs run now?"""
        return self.revision is not None and not self.paused and self.cancelled is None

    @property
    def closes(self) -> float | None:
        """When its jobs are released, so that what they have is safe before machines go; None for never."""
        if self.expires is None or self.revision is None:
            return None
        spare = SPARE + self.revision.settings.grace
        return self.expires - min(spare, (self.expires - self.revision.applied) * _SHARE)

    def over(self, now: float) -> bool:
        """Has it expired, or is about to? `now`: seconds since the epoch. Nothing of it may run then."""
        return self.closes is not None and now >= self.closes

    def wants(self, job: str) -> bool:
        """Is the job part of its newest revision, and not adopted from another?"""
        return self.revision is not None and job in self.revision.rows and job not in self.revision.adopted


def fold_entry(state: SweepState, order: dict[str, Any]) -> SweepState:
    """Return the state after one more entry."""
    state = replace(state, head=state.head + 1)
    kind = order["kind"]
    if kind == "seen":
        return replace(state, seen=_read_seen(state, order))
    state = replace(state, changed_at=state.head)
    if kind == "pause":
        return replace(state, paused=True)
    if kind == "extend":
        # The latest counts, whoever of two was first; what never expires is not made to.
        later = None if state.expires is None else max(state.expires, order["until"])
        return replace(state, expires=later)
    waived = state.waived or state.goal
    if kind == "cancel":
        cause = (order["cause"][0], order["cause"][1]) if "cause" in order else None
        state = cancel_state(state, order.get("reason", ""), cause, goal=order.get("goal", False))
        return replace(state, waived=waived, cancelled_by=order.get("author", ""))
    state = replace(state, cancelled=None, cancelled_by="", cause=None, goal=False, waived=waived)
    if kind == "revision":
        revision = Revision.from_json(order)
        if revision.sweep != state.name:
            raise ValueError(f"it is a revision of sweep {revision.sweep!r}")
        waived = (
            waived and state.revision is not None and state.revision.settings.stop_when == revision.settings.stop_when
        )
        settings, undone = revision.settings, (state.undone or state.revision) if revision.restores else None
        ends = state.can_end_itself or settings.fail_fast or any(rule.sweep for rule in settings.stop_when)
        state = replace(state, revision=revision, revision_at=state.head, waived=waived, expires=revision.expires)
        state = replace(state, can_end_itself=ends, seen=None, undone=undone)
        return replace(state, recipes=_add_recipe(state.recipes, revision, state.head))
    if kind == "resume":
        return replace(state, paused=False)
    return replace(state, retries={**state.retries, **order.get("jobs", {})})


def _read_seen(state: SweepState, order: dict[str, Any]) -> SeenCommit:
    if state.revision is None or not order["git"] or "commit" not in order["git"]:
        raise ValueError("expected a revision before it, and a commit in it")
    return SeenCommit(order["git"], order.get("author", ""), order.get("at", ""), order.get("spec", ""))


def cancel_state(state: SweepState, reason: str, cause: tuple[str, int] | None, *, goal: bool) -> SweepState:
    """Return the state, cancelled; `cause`: the end (job, position) for which; `goal`: of `stop_when`."""
    acted = state.acted | {cause} if cause else state.acted
    return replace(state, cancelled=reason or "cancelled", cause=cause, goal=goal, acted=acted)


def _add_recipe(known: tuple[EarlierRecipe, ...], revision: Revision, number: int) -> tuple[EarlierRecipe, ...]:
    """Add the revision's recipe, unless the revision before had the same, applied from the same commit."""
    git, last = revision.git or {}, known[-1] if known else None
    # Equal recipes are one object: a sweep may have thousands of revisions.
    recipe = last.recipe if last is not None and last.recipe == revision.recipe else revision.recipe
    names = frozenset(revision.table.columns)
    made = EarlierRecipe(
        recipe, names, revision.sweep, number, str(git.get("commit", "")), bool(git.get("dirty", False))
    )
    return known if last is not None and replace(made, number=last.number) == last else (*known, made)


def judge_entry(state: SweepState, keys: Keys, store: str, signers: EntrySigners, data: bytes) -> SweepState:
    """Return the state after one more entry, whatever its bytes are: this alone decides whether an entry counts.

    One that is ill-formed, or of a kind that is not known, changes nothing but `head`, `digest` and `skipped_entries`.
    Nor does one that is unsigned, or signed for another place or by a key that is not trusted. `store`: the store's id.
    """
    place = locate_next(state, keys, store)
    key, state = (
        keys.sweep_log(state.name) + spell_number(place.number),
        replace(state, digest=hash_entries(state.digest, data)),
    )
    try:
        entry_shape.refuse_oversized(data)
        signer = signers.check(place, data)
        after = fold_entry(state, decode_order(key, data))
        return replace(after, signer=signer) if after.revision_at == after.head else after
    except (SignatureRefused, entry_shape.MalformedEntry) as exc:
        why = str(exc)
    except CorruptObject as exc:
        why = exc.message.removeprefix(f"{key}: ")
    except Exception as exc:  # whatever is wrong with it is wrong with this entry alone
        why = f"not a readable entry of a sweep's log ({exc!r:.200})"
    return replace(state, head=state.head + 1, skipped_entries=state.skipped_entries.add(key, why))


def forget_entries(state: SweepState) -> SweepState:
    """Return a state from which the sweep's log is folded again, with all that is known of its log of stops."""
    fresh = SweepState(state.name, stops=state.stops)
    return replace(fresh, stops_read=state.stops_read, skipped_stops=state.skipped_stops)


def locate_next(state: SweepState, keys: Keys, store: str) -> EntryPlace:
    """Return the place of the entry that follows: the place that its signature covers."""
    return EntryPlace(store, keys.project, state.name, state.head + 1, state.digest)


def make_missing_sweep(state: SweepState) -> NotFound:
    """Return the error for a sweep without a revision: none was applied, or none counts."""
    why = "".join(f"; {line}" for line in state.skipped.lines)
    return NotFound(f"there is no sweep {state.name!r} in this project{why}", hint="`monkey list sweeps` names them")
