"""Pairs of jobs of two sweeps: those with equal parameters, by seed; and the jobs that have no partner."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from monkey.errors import MonkeyError
from monkey.plan.text.describe import make_value_format
from monkey.results.result_rows import Results, check_known_name
from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.job.job_table import ABSENT, ParameterColumn, ParameterValue
from monkey.spec.parameters.conditions import ConditionError, parse_condition

#: Values beyond it have differences that may be no finite float.
_LARGEST = sys.float_info.max / 4
#: Parameters that a hint names, and values of each.
_NAMED, _VALUES = 3, 3
#: How the table of one side spells a job: its parameters, and its seeds.
_Key = tuple[str, ...]


@dataclass(frozen=True)
class ComparedSide:
    """BASE or HEAD: a sweep, or one of its revisions."""

    #: "BASE" or "HEAD".
    role: str
    #: As a user names it: "digits@3".
    name: str
    results: Results
    #: Job to the finished job whose result it has adopted.
    adopted: Mapping[str, str]


class JobPair(NamedTuple):
    """Two jobs with equal parameters and seed, and the values of the metric that stand for them."""

    seed: Mapping[str, ParameterValue]
    base_job: str
    head_job: str
    base: float
    head: float
    #: Is it one result? A change that concerns no job leaves both sides with the same job.
    same: bool

    @property
    def delta(self) -> float:
        """The difference: HEAD less BASE."""
        return float(self.head - self.base)


class UnpairedJob(NamedTuple):
    """A job that has no partner, or no value that counts."""

    role: str
    job: str
    parameters: Mapping[str, ParameterValue]
    #: "failed", "running", "succeeded (diverged)"; "" where the other side has no such job, whatever its state.
    why: str
    #: Does the other side have such a job, and does that one count?
    partner_counts: bool


class PairedConfiguration(NamedTuple):
    """A configuration that both sides have: its parameters, and its pairs; none where no seed counts on both sides."""

    parameters: Mapping[str, ParameterValue]
    pairs: Sequence[JobPair]


@dataclass(frozen=True)
class PairedJobs:
    """All jobs of two sides: in pairs by configuration, in HEAD's order, or unpaired."""

    configurations: Sequence[PairedConfiguration]
    unpaired: Sequence[UnpairedJob]


class _SideIndex(NamedTuple):
    side: ComparedSide
    #: Configuration to the places of its jobs, by seed.
    places: Mapping[_Key, Mapping[_Key, int]]


def find_seeds(base: ComparedSide, head: ComparedSide, named: Collection[str]) -> list[str]:
    """Return the parameters that repeat a configuration: those named, or else the repeats of either side.

    Raises MonkeyError for a name that is no parameter of either side.
    """
    known = _list_parameters(base, head)
    for name in named:
        check_known_name(name, known, "--seed", "parameters")
    repeats = named or base.results.repeats | head.results.repeats
    return [name for name in known if name in repeats]


def filter_sides(base: ComparedSide, head: ComparedSide, condition: str) -> tuple[ComparedSide, ComparedSide]:
    """Return both sides with those jobs alone whose parameters a `--where` holds for.

    It names parameters alone: who chooses jobs by what came of them leaves out what became worse. Raises MonkeyError
    for a condition that cannot be read, or does not fit the values.
    """
    try:
        parsed = parse_condition(condition, _list_parameters(base, head))
        chosen = []
        for side in (base, head):
            table = side.results.table
            places = [at for at in range(len(table)) if parsed.holds(table.parameters(at))]
            chosen.append(replace(side, results=side.results.choose(places)))
    except ConditionError as exc:
        raise MonkeyError(f"--where {condition!r}: {exc.message}", hint=exc.hint) from exc
    return chosen[0], chosen[1]


def match_jobs(
    base: ComparedSide, head: ComparedSide, metric: str, ignored: Collection[str], seeds: Collection[str]
) -> PairedJobs:
    """Pair the chosen jobs of two sides by all parameters but the ignored ones and the seeds, and then by seed.

    Values are equal as numbers: 1 is 1.0, but not true. A pair has a value of the metric on both sides, of jobs that
    count. Raises MonkeyError for an ignored name that is no parameter of either side, and where several jobs of one
    side would be one.
    """
    known = _list_parameters(base, head)
    for name in ignored:
        check_known_name(name, known, "--ignore", "parameters")
    kept = [name for name in known if name not in ignored and name not in seeds]
    ours = [name for name in seeds if name not in ignored]
    exact = {name for name in known if any(_tells_spellings_apart(side, name) for side in (base, head))}
    before, after = (_index_jobs(side, kept, ours, ignored, exact) for side in (base, head))
    configurations, unpaired = list[PairedConfiguration](), list[UnpairedJob]()
    for key in dict.fromkeys([*after.places, *before.places]):
        both = key in after.places and key in before.places
        of_base, of_head = before.places.get(key, {}), after.places.get(key, {})
        pairs = []
        for seed in dict.fromkeys([*of_head, *of_base]):
            found = _match_places(before.side, of_base.get(seed), after.side, of_head.get(seed), metric, ours)
            if isinstance(found, JobPair):
                pairs.append(found)
            else:
                unpaired += found
        if both:
            parameters = head.results.table.parameters(next(iter(of_head.values())))
            shown = {name: value for name, value in parameters.items() if name in kept}
            configurations.append(PairedConfiguration(shown, pairs))
    return PairedJobs(configurations, unpaired)


def explain_no_pairs(base: ComparedSide, head: ComparedSide, ignored: Collection[str], seeds: Collection[str]) -> str:
    """Return which parameters have no value that both sides share, and thus leave no pair; "" where there is none."""
    found = []
    for name in _list_parameters(base, head):
        ours, theirs = ({*_spell_column(side, name)} for side in (base, head))
        if name not in ignored and ours and theirs and ours.isdisjoint(theirs):
            columns = [side.results.table.columns.get(name) for side in (base, head)]
            text = make_value_format([value for column in columns if column for value in column.values])
            before, after = (_list_values(column, text) for column in columns)
            found.append(f"{name} is {before} in BASE, {after} in HEAD")
    if not found:
        return ""
    named = [text.split(" is ", 1)[0] for text in found if text.split(" is ", 1)[0] not in seeds]
    how = f"; add {' '.join(f'--ignore {name}' for name in named[:_NAMED])}" if named else ""
    return "; ".join(found[:_NAMED]) + how


def _list_parameters(base: ComparedSide, head: ComparedSide) -> list[str]:
    return list(dict.fromkeys([*head.results.table.columns, *base.results.table.columns]))


def _list_values(column: ParameterColumn | None, text: Callable[[ParameterValue], str]) -> str:
    if column is None:
        return "absent"
    texts = [text(value) for value in column.values[:_VALUES]]
    return ", ".join(texts) + (", …" if len(column.values) > _VALUES else "")


def _spell_column(side: ComparedSide, name: str, *, exact: bool = False) -> Sequence[str]:
    """Return the value of a parameter for each job as its one JSON text; "" for a job that lacks it.

    Equal numbers have one text, unless `exact`.
    """
    column = side.results.table.columns.get(name)
    if column is None:
        return [""] * len(side.results.table)
    texts = [dump_canonical_json(value if exact else _fold_numbers(value)) for value in column.values]
    return [texts[index] if index != ABSENT else "" for index in column.index]


def _fold_numbers(value: Any) -> Any:
    """Return a value with its whole numbers written without a point, those of lists and mappings, too."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_fold_numbers(item) for item in value]
    return {name: _fold_numbers(item) for name, item in value.items()} if isinstance(value, dict) else value


def _tells_spellings_apart(side: ComparedSide, name: str) -> bool:
    """Has the side jobs that differ in nothing but 1 and 1.0?"""
    return len({*_spell_column(side, name)}) < len({*_spell_column(side, name, exact=True)})


def _index_jobs(
    side: ComparedSide, kept: Sequence[str], seeds: Sequence[str], ignored: Collection[str], exact: Collection[str]
) -> _SideIndex:
    table = side.results.table
    keys, repeats = (
        list(zip(*(_spell_column(side, name, exact=name in exact) for name in names), strict=True)) or [()] * len(table)
        for names in (kept, seeds)
    )
    places: dict[_Key, dict[_Key, int]] = {}
    for at in sorted(side.results.order):
        key, seed = keys[at], repeats[at]
        other = places.setdefault(key, {}).setdefault(seed, at)
        if other != at:
            raise MonkeyError(
                f"--ignore {' '.join(ignored)}: jobs {table.ids[other]} and {table.ids[at]} of {side.role} "
                f"({side.name}) would be one, as they differ in nothing else",
                hint="ignore only what has one value on each side; the seed needs no --ignore",
            )
    return _SideIndex(side, places)


def _match_places(
    base: ComparedSide, at_base: int | None, head: ComparedSide, at_head: int | None, metric: str, seeds: Sequence[str]
) -> JobPair | list[UnpairedJob]:
    """Return the pair, or the jobs of these places that are none, with the reasons."""
    sides = [(side, at) for side, at in ((base, at_base), (head, at_head)) if at is not None]
    if at_base is None or at_head is None:
        ((side, at),) = sides
        return [_make_unpaired(side, at, "")]
    whys = [_explain_uncounted(side.results, at, metric) for side, at in sides]
    if any(whys):
        # One whose partner does not count is named by that partner.
        lacking = zip(sides, whys, reversed(whys), strict=True)
        return [_make_unpaired(side, at, why, not other) for (side, at), why, other in lacking if why]
    jobs = base.results.table.ids[at_base], head.results.table.ids[at_head]
    owners = base.adopted.get(jobs[0], jobs[0]), head.adopted.get(jobs[1], jobs[1])
    parameters = head.results.table.parameters(at_head)
    x, y = base.results.values[metric][at_base], head.results.values[metric][at_head]
    assert x is not None and y is not None  # else there were reasons
    seed = {name: parameters[name] for name in seeds if name in parameters}
    return JobPair(seed, *jobs, x, y, same=owners[0] == owners[1])


def _make_unpaired(side: ComparedSide, at: int, why: str, partner_counts: bool = False) -> UnpairedJob:
    table = side.results.table
    return UnpairedJob(side.role, table.ids[at], table.parameters(at), why, partner_counts)


def _explain_uncounted(results: Results, at: int, metric: str) -> str:
    """Return why the job at a place has no value that counts; "" where it has one."""
    state = results.states[at]
    if results.diverged[at]:
        return f"{state} (diverged)"
    if not results.counts[at]:
        return state
    value = results.values[metric][at] if metric in results.values else None
    if value is None:
        return f"{state} without logging {metric}"
    return "" if -_LARGEST <= value <= _LARGEST else f"{state} without a value of {metric} that can be compared"
