"""A sweep's log: revisions and orders (pause, resume, cancel, retry, extend), folded; and the queue markers."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from monkey.errors import ConcurrentApply, CorruptObject, KeyMissing, NotFound
from monkey.protocol.entry_log import Create
from monkey.protocol.layout import Keys, is_name, parse_number, spell_number
from monkey.protocol.skipped_entries import NONE_SKIPPED, SkippedEntries
from monkey.protocol.sweeps.revision import NumberedRevision, Revision, decode_order
from monkey.protocol.wakeup import wake_agents
from monkey.spec.job.recipe import EarlierRecipe
from monkey.store.create import Lost, create_object
from monkey.store.store_port import Store

#: Seconds before a sweep expires, and its jobs' grace, in which they save what they have and are released; no more
#: than this share of all its time, for those that are given little.
SPARE, _SHARE = 300.0, 0.1


@dataclass(frozen=True)
class SweepState:
    """A sweep as its log says it is, up to entry `head`."""

    name: str
    head: int = 0
    revision: Revision | None = None
    #: The entry that is the newest revision.
    revision_at: int = 0
    paused: bool = False
    #: Why it was cancelled; None when it was not.
    cancelled: str | None = None
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
    #: Entries that count for nothing.
    skipped: SkippedEntries = NONE_SKIPPED

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
    if kind == "pause":
        return replace(state, paused=True)
    if kind == "extend":
        # The latest counts, whoever of two was first; what never expires is not made to.
        later = None if state.expires is None else max(state.expires, order["until"])
        return replace(state, expires=later)
    waived = state.waived or state.goal
    if kind == "cancel":
        cause = (order["cause"][0], order["cause"][1]) if "cause" in order else None
        state = replace(state, acted=state.acted | {cause} if cause else state.acted, cause=cause, waived=waived)
        return replace(state, cancelled=order.get("reason") or "cancelled", goal=order.get("goal", False))
    state = replace(state, cancelled=None, cause=None, goal=False, waived=waived)
    if kind == "revision":
        revision = Revision.from_json(order)
        if revision.sweep != state.name:
            raise ValueError(f"it is a revision of sweep {revision.sweep!r}")
        waived = (
            waived and state.revision is not None and state.revision.settings.stop_when == revision.settings.stop_when
        )
        state = replace(state, revision=revision, revision_at=state.head, waived=waived, expires=revision.expires)
        return replace(state, recipes=_add_recipe(state.recipes, revision, state.head))
    if kind == "resume":
        return replace(state, paused=False)
    return replace(state, retries={**state.retries, **order.get("jobs", {})})


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


async def list_sweeps(store: Store, keys: Keys) -> list[str]:
    """Return the names of all sweeps that were ever applied, sorted; what no spec can be named is no sweep's."""
    items = await store.list(keys.sweeps)
    return sorted(filter(is_name, {item.key.removeprefix(keys.sweeps).partition("/")[0] for item in items}))


def judge_entry(state: SweepState, key: str, data: bytes) -> SweepState:
    """Return the state after one more entry, whatever its bytes are: this alone decides whether an entry counts.

    One that is ill-formed, or of a kind that is not known, changes nothing but `head` and `skipped`.
    """
    try:
        return fold_entry(state, decode_order(key, data))
    except CorruptObject as exc:
        why = exc.message.removeprefix(f"{key}: ")
    except Exception as exc:  # whatever is wrong with it is wrong with this entry alone
        why = f"not a readable entry of a sweep's log ({exc!r:.200})"
    return replace(state, head=state.head + 1, skipped=state.skipped.add(key, why))


async def read_sweep(store: Store, keys: Keys, name: str, known: SweepState | None = None) -> SweepState:
    """Read what the sweep's log says, starting from what is known. A sweep never applied has head 0."""
    state = known or SweepState(name)
    async for after in _walk_log(store, keys, state):
        state = after
    return state


async def list_revisions(store: Store, keys: Keys, name: str) -> list[NumberedRevision]:
    """Return all revisions of a sweep, the first one first."""
    found = []
    async for state in _walk_log(store, keys, SweepState(name)):
        if state.revision is not None and state.revision_at == state.head:
            found.append(NumberedRevision(state.head, state.revision))
    return found


async def _walk_log(store: Store, keys: Keys, state: SweepState) -> AsyncIterator[SweepState]:
    """Yield the state after each entry that follows."""
    while True:
        key = keys.sweep_log(state.name) + spell_number(state.head + 1)
        try:
            data = await store.get(key)
        except KeyMissing:
            return
        state = judge_entry(state, key, data)
        yield state


def make_missing_sweep(state: SweepState) -> NotFound:
    """Return the error for a sweep without a revision: none was applied, or none counts."""
    why = "".join(f"; {line}" for line in state.skipped.lines)
    return NotFound(f"there is no sweep {state.name!r} in this project{why}", hint="`monkey list sweeps` names them")


async def append_revision(
    store: Store, keys: Keys, revision: Revision, after: int, create: Create = create_object
) -> int:
    """Append the revision as entry `after` + 1, durably, and return that number.

    Raises ConcurrentApply where another entry is there already.
    """
    body = {"kind": "revision", "nonce": secrets.token_hex(8), **revision.to_json()}
    answer = await create(store, keys.sweep_log(revision.sweep) + spell_number(after + 1), _dump(body))
    if isinstance(answer, Lost):
        raise ConcurrentApply(
            f"sweep {revision.sweep!r} was changed by somebody else while this plan was being applied",
            hint="look at what changed with `monkey plan`, then apply again",
        )
    return after + 1


async def append_order(
    store: Store,
    keys: Keys,
    name: str,
    kind: str,
    *,
    reason: str = "",
    jobs: dict[str, int] | None = None,
    cause: tuple[str, int] | None = None,
    goal: bool = False,
    until: float | None = None,
    create: Create = create_object,
    known: SweepState | None = None,
    nonce: str = "",
) -> int:
    """Append pause, resume, cancel, retry or extend after whatever is there; returns its number. Raises NotFound.

    `until`: when it is to expire, seconds since the epoch.
    `cause`: an end (job, position) that causes one order, whichever agents notice it; `goal`: of `stop_when`.
    `nonce`: random by default.
    """
    body: dict[str, Any] = {"kind": kind, "nonce": nonce or secrets.token_hex(8)}
    body |= {"reason": reason} if reason else {}
    body |= {"jobs": jobs} if jobs else {}
    body |= {"cause": list(cause)} if cause else {}
    body |= {"goal": True} if goal else {}
    body |= {} if until is None else {"until": until}
    state = known
    while True:
        state = await read_sweep(store, keys, name, state)
        if state.revision is None:
            raise make_missing_sweep(state)
        if cause and (cause in state.acted or not state.active or (goal and state.waived)):
            return state.head
        answer = await create(store, keys.sweep_log(name) + spell_number(state.head + 1), _dump(body))
        if not isinstance(answer, Lost):
            await wake_agents(store, keys)
            return state.head + 1


async def mark_queue(store: Store, keys: Keys, fleets: Iterable[str], sweep: str, n: int) -> None:
    """Tell the fleets that entry n of the sweep's log left work for them."""
    for fleet in fleets:
        await create_object(store, keys.marker(fleet, sweep, n), b"{}")
    await wake_agents(store, keys)


async def end_marker(store: Store, keys: Keys, fleet: str, sweep: str, n: int, create: Create = create_object) -> None:
    """Tell the fleet that nothing of entry n is left."""
    await create(store, keys.marker(fleet, sweep, n) + ".end", b"{}", durable=False)


async def open_markers(store: Store, keys: Keys, fleet: str) -> dict[str, list[int]]:
    """Return, for each sweep that has work for the fleet, the entries that left it."""
    prefix = keys.queue(fleet)
    found: dict[str, set[int]] = {}
    ended: set[tuple[str, int]] = set()
    for item in await store.list(prefix):
        sweep, _, name = item.key.removeprefix(prefix).partition("/")
        n = parse_number(name.removesuffix(".end"))
        if n is None or not is_name(sweep):
            continue
        if name.endswith(".end"):
            ended.add((sweep, n))
        else:
            found.setdefault(sweep, set()).add(n)
    left = {sweep: sorted(n for n in numbers if (sweep, n) not in ended) for sweep, numbers in found.items()}
    return {sweep: numbers for sweep, numbers in left.items() if numbers}


def _dump(body: dict[str, Any]) -> bytes:
    # As in entries.py: a reason may come from a command line that is no UTF-8.
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")
