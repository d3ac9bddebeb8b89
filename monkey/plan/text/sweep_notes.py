"""Notes on a sweep: facts that are no change, but should be known before an apply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from monkey.errors import SpecError
from monkey.plan.advice import SweepSituation, suggest_extension, suggest_reopening, suggest_retry
from monkey.plan.change import SweepPlan
from monkey.plan.jobs.states import find_reopened_jobs
from monkey.plan.observed import AppliedRevision, ObservedSweep
from monkey.plan.text.value_keys import make_value_key
from monkey.spec.command.word_split import split_words
from monkey.spec.job.expires import format_utc_time
from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.yaml.document import parse_document

#: How a refusal begins that leaves a cancelled sweep as it is: it says who cancelled it, and what opens it.
STAYS_CANCELLED = "stays cancelled"
#: Fields of a spec that its jobs' parameters follow from.
_MATRIX = ("method", "parameters", "seed", "run_cap", "repeat", "zip", "include", "exclude")
#: What separates parts of a script.
_SEPARATOR = re.compile(r"[;\n]|(?<!\|)\|(?!\|)")
_STOPS = (
    "this version of monkey ends a job where a part of its command fails, also within a pipe; "
    "it ran on when this was applied: `set +e` as the first line does so again"
)


def collect_sweep_notes(sweep: SweepPlan) -> tuple[str, ...]:
    """Return what should be known of a sweep: how it stands, and what a new revision does, unless that is refused."""
    seen, refused, notes = sweep.observed, sweep.refusal is not None, list[str]()
    if seen is not None and seen.applied is not None:
        notes += _note_standing(sweep, seen, refused=refused)
        notes += _note_tried_again(sweep, seen, refused=refused)
        notes += _note_other_values(sweep, seen.applied)
        goes_on = sweep.revises or seen.unfinished
        if _has_parts(sweep.desired.recipe.command) and goes_on and not seen.applied.strict:
            notes.append(_STOPS)
    if sweep.jobs.failed and not refused:
        notes.append(_note_failed_before(sweep))
    return tuple(notes)


def _note_standing(sweep: SweepPlan, seen: ObservedSweep, *, refused: bool) -> list[str]:
    name, notes, at = sweep.name, list[str](), _judge_situation(sweep, seen)
    if seen.foreign:
        notes.append(
            f"no signer whom you trust applied revision {seen.applied_at}: apply signs a new one, which runs here"
        )
    if seen.paused:
        notes.append(f"paused: nothing runs before `monkey resume {name}`")
    if seen.over and seen.unfinished and seen.cancelled is None and seen.expires is not None:
        too = "" if refused else ", and so does a new revision"
        notes.append(f"expired at {format_utc_time(seen.expires)}: {suggest_extension(name)}{too}")
    held = sweep.refusal is not None and sweep.refusal.text.startswith(STAYS_CANCELLED)
    if seen.cancelled is not None and not held:
        why = "" if seen.cancelled == "cancelled" else f" ({seen.cancelled})"  # what it is where no reason was given
        opens = suggest_reopening(at) if refused else f"a new revision or {suggest_reopening(at)}"
        notes.append(f"{'stopped' if seen.goal else 'cancelled'}{why}: {opens} opens it again")
    return notes


def _note_tried_again(sweep: SweepPlan, seen: ObservedSweep, *, refused: bool) -> list[str]:
    assert seen.applied is not None
    notes, want = list[str](), sweep.desired
    again = 0 if refused else len(find_reopened_jobs(seen, want.settings.stop_when).intersection(want.table.ids))
    if again:
        notes.append(f"stop_when changes: {again} stopped {'job goes' if again == 1 else 'jobs go'} on")
    failed = sweep.jobs.kept_states.get("failed", 0)
    if failed and not refused and want.settings.max_retries > seen.applied.settings.max_retries:
        notes.append(
            f"max_retries is raised: up to {failed} failed {'job is' if failed == 1 else 'jobs are'} tried again"
        )
    elif failed:
        jobs_are = "1 job has" if failed == 1 else f"{failed} jobs have"
        notes.append(f"{jobs_are} failed: {suggest_retry(_judge_situation(sweep, seen))}")
    return notes


def _note_other_values(sweep: SweepPlan, applied: AppliedRevision) -> list[str]:
    """Note jobs that are others though the spec asks for the same: another version of monkey made their values."""
    want, new, removed = sweep.desired, len(sweep.jobs.new), len(sweep.jobs.removed)
    # A preview has some of the jobs, and which ones follows from more than the spec.
    if want.about or not (new and removed):
        return []
    asked = _read_matrix(want.spec_text)
    if not asked or asked != _read_matrix(applied.spec_text):
        return []
    old = {name: {*map(make_value_key, column.values)} for name, column in applied.table.columns.items()}
    columns = want.table.columns.items()
    names = [
        name for name, column in columns if not old.get(name, set()).issuperset(map(make_value_key, column.values))
    ]
    what = ", ".join(names) or "its parameters"
    says = f"the spec's parameters are as applied, but this version of monkey makes other values of {what}"
    return [f"{says}: {new:,} new, {removed:,} removed"]


def _has_parts(command: str | list[str]) -> bool:
    """Return whether a command is a script of several parts, each of which may fail."""
    return isinstance(command, str) and split_words(command) is None and bool(_SEPARATOR.search(command.strip()))


def _read_matrix(text: str) -> str:
    """Return the fields of a spec's text that its jobs' parameters follow from; "" for a text that is no spec."""
    try:
        data = parse_document(text, "").data
    except SpecError:
        return ""
    return dump_canonical_json({name: data.get(name) for name in _MATRIX}) if isinstance(data, dict) else ""


def _judge_situation(sweep: SweepPlan, seen: ObservedSweep) -> SweepSituation:
    fail_fast = seen.applied is not None and seen.applied.settings.fail_fast
    return SweepSituation(sweep.name, len(seen.failed), fail_fast=fail_fast, lacks_data=seen.lacks_data)


def _note_failed_before(sweep: SweepPlan) -> str:
    count, settings = len(sweep.jobs.failed), sweep.desired.settings
    jobs = f"{count:,} {'job' if count == 1 else 'jobs'} {sweep.jobs.ended_before}"
    # An agent judges all jobs of the sweep. The first that has failed ends it, unless that failure did so once before.
    if settings.fail_fast and sweep.jobs.met < count:
        jobs += ", which may cancel the sweep (fail_fast)"
    if sweep.jobs.met and any(rule.sweep for rule in settings.stop_when):
        jobs += ", which may end the sweep (stop_when)"
    return f"{jobs}: once applied, {suggest_retry(SweepSituation(sweep.name))}"


def note_failed_adopters(results: Mapping[str, str], failed: AbstractSet[str]) -> tuple[str, ...]:
    """Note how many of the jobs that adopt `results` have failed themselves: their authors may not know that."""
    count = len(results.keys() & failed) if failed else 0
    has = "has failed itself" if count == 1 else "have failed themselves"
    return (f"{count:,} of the jobs that adopt a result {has}",) if count else ()
