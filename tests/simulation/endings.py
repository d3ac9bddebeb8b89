"""What must hold of sweeps that expire, and of what ends by `stop_when`, looked at from the store's side."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, JobEntry
from monkey.protocol.entry_log import EntryLog, tally_log
from monkey.protocol.sweeps.revision import decode_order
from monkey.protocol.sweeps.stop_log import apply_stops, decode_pointer, tally_stop
from monkey.protocol.sweeps.sweep_state import StopPointer, SweepState, judge_entry
from monkey.protocol.sweeps.verdicts import Verdict, judge_job
from monkey.spec.job.stop_when import StopEvidence, StopRule, find_met_rule
from tests.simulation.body import KEYS
from tests.simulation.garbage import FORGED_JOBS
from tests.simulation.net import WALL

if TYPE_CHECKING:
    from tests.simulation.world import World


def _list_orders(state: SweepState) -> tuple[object, ...]:
    """Return what entries change."""
    return state.seen, state.revision_at, state.paused, state.cancelled, state.retries, state.expires, state.recipes


#: Seconds after which a claim of an expired sweep is on its way no more: machines stand still, and writes arrive late.
LATE = 900.0


class Endings:
    """The orders of all sweeps, as they were written, and what agents concluded of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.states: dict[str, SweepState] = {}
        self._entries: dict[str, list[tuple[str, bytes]]] = {"a": [], "b": []}
        self._pointers: dict[str, list[StopPointer]] = {"a": [], "b": []}
        #: Every list of conditions that a sweep ever had: agents may not have heard of the newest.
        self.rules: dict[str, list[list[StopRule]]] = {}
        #: Job to what ended it, as the machines know it.
        self.met: dict[tuple[str, int], StopEvidence] = {}
        #: Job, position of its end, and a sweep that had no other job left then, or when it was last given an order.
        self.too_late: set[tuple[str, int, str]] = set()

    def written(self, key: str, data: bytes) -> None:
        """An entry of a sweep's log was written."""
        name = key.removeprefix(KEYS.sweeps).partition("/")[0]
        if name not in self._entries:
            return
        self._entries[name].append((key, data))
        before, state = self._fold(name)
        if state.skipped != before.skipped:
            self.world.counts["entry skipped"] += 1
            return
        if decode_order(key, data)["kind"] == "seen":
            # By itself: a stop that somebody forged may name the place of this entry, and count from here on.
            judged = judge_entry(before, KEYS, "", self.world.signers, data)
            if _list_orders(judged)[1:] != _list_orders(before)[1:] or judged.changed_at != before.changed_at:
                self.world.violations["a commit that was seen changed something"] += 1
        if before.over(WALL + self.world.loop.time()) and not state.over(WALL + self.world.loop.time()):
            self.world.counts["opened after it expired"] += 1
        if decode_order(key, data)["kind"] == "revision" and state.revision:
            self.rules.setdefault(name, []).append(state.revision.settings.stop_when)
        if self._nothing_left(name):
            for job in state.revision.table.ids if state.revision else ():
                self.too_late |= {(job, k, name) for k in tally_log(self.world.log(KEYS.job_log(job))).stopped}

    def stopped(self, key: str, data: bytes) -> None:
        """An entry of a log of stops was written, by an agent or by a forger."""
        name = key.removeprefix(KEYS.stops).partition("/")[0]
        with contextlib.suppress(ValueError):
            self._pointers[name].append(decode_pointer(data))
            self._fold(name)

    def _fold(self, name: str) -> tuple[SweepState, SweepState]:
        """Fold both logs from their beginning; return the state before, and after."""
        before, state = self.states.get(name, SweepState(name)), SweepState(name)
        running = before
        stops = [tally_stop(each, self.world.log(KEYS.job_log(each.job))) for each in self._pointers[name]]
        for key, data in self._entries[name]:
            judged = judge_entry(state, KEYS, "", self.world.signers, data)
            if key in self.world.forged and _list_orders(judged) != _list_orders(state):
                self.world.violations["a forged entry counted"] += 1
            state = apply_stops(judged, stops)
            # A person may give an order before an agent writes its pointer: what counts is the place that it names.
            if state.cause != judged.cause:
                running = judged
                if not judged.active:
                    self.world.violations["what was not active was ended by a job"] += 1
        self.states[name] = state
        if state.cause is not None and state.cause != before.cause:
            self._check_stop(running, state)
        return before, state

    def _check_stop(self, running: SweepState, state: SweepState) -> None:
        """Look at a sweep that a job's end has just ended: was that end there, and such an end?

        `running`: the sweep after the entry that the pointer names. A forger may name a revision to come.
        """
        world = self.world
        assert state.cause and state.revision
        (job, k), settings = state.cause, state.revision.settings
        world.counts["goal reached" if state.goal else "fail_fast"] += 1
        log = world.log(KEYS.job_log(job)).entries
        if k > len(log) or job not in state.revision.rows:
            world.violations["a sweep was ended for what no job of it did"] += 1
        elif state.goal:
            end = log[k - 1]
            seen = StopEvidence.from_json(end.met) if isinstance(end, EndEntry) and end.met else None
            if seen is None or not find_met_rule(settings.stop_when, seen):
                world.violations["a sweep was ended by a goal that no job reached"] += 1
            if running.waived:
                world.violations["a sweep that was opened again was ended by its goal"] += 1
        elif not settings.fail_fast or any(
            isinstance(entry, EndEntry) and entry.outcome is ClaimEnd.SUCCEEDED for entry in log[:k]
        ):
            world.violations["a sweep was ended by a job that had not failed"] += 1

    def ended(self, job: str, entry: JobEntry, k: int) -> None:
        """An end was written: note what the machine saw, whatever the entry says of it."""
        for name in [name for name, pointers in self._pointers.items() if any(job == one.job for one in pointers)]:
            self._fold(name)
        if isinstance(entry, EndEntry) and entry.met:
            self.too_late |= {(job, k, name) for name in self.states if self._nothing_left(name, but=job)}
        if isinstance(entry, EndEntry) and entry.outcome is ClaimEnd.STOPPED:
            self.world.counts["stopped by a condition"] += 1
            for execution in self.world.active[job]:
                if execution.attempt.k == entry.out and execution.met:
                    self.met[job, k] = execution.met

    def _nothing_left(self, name: str, but: str = "") -> bool:
        state = self.states[name]
        others = {*state.revision.table.ids} - {but} if state.revision else set()
        logs = ((job, self.world.log(KEYS.job_log(job))) for job in others)
        return all(judge_job(job, tally_log(log), state) is not Verdict.OPEN for job, log in logs)

    def claimed(self, job: str, claim: Claim, log: EntryLog) -> None:
        """A job was claimed: is it one that nobody asked for, or that had ended for good?"""
        if int(job, 16) in range(*FORGED_JOBS):
            self.world.violations["a job that nobody asked for was claimed"] += 1
        last = log.entries[-2] if log.head > 1 else None
        state = self.states.get(claim.sweep)
        if state and not claim.continues and state.over(WALL + self.world.loop.time() - LATE):
            self.world.violations["a job was claimed though its sweep had expired"] += 1
        if not isinstance(last, EndEntry) or last.outcome is not ClaimEnd.STOPPED or claim.sweep not in self.states:
            return
        self.world.counts["begun again after a condition"] += 1
        seen = self.met.get((job, log.head - 1))
        retried = self.states[claim.sweep].retries.get(job, 0) >= log.head - 1
        if seen is not None and not retried and all(find_met_rule(rules, seen) for rules in self.rules[claim.sweep]):
            self.world.violations["a job that met a condition was run again"] += 1

    def check(self, name: str) -> None:
        """Look at a sweep after the run: was its goal reached without anybody acting on it?"""
        state = self.states[name]
        if not state.active or state.waived or state.revision is None:
            return
        for job in state.revision.table.ids:
            log = self.world.log(KEYS.job_log(job))
            counted = tally_log(log)
            for k, seen in counted.stopped.items():
                if counted.succeeded and k < log.head:
                    continue  # it went on, under other conditions, and ended without meeting one
                if k <= state.retries.get(job, 0):
                    continue  # somebody had it tried again before an agent acted on it: what it measured is void
                rule = find_met_rule(state.revision.settings.stop_when, seen)
                unseen = (job, k) not in state.acted and (job, k, name) not in self.too_late
                if rule and rule.sweep and unseen:
                    self.world.violations["a goal was reached, and the sweep went on"] += 1
