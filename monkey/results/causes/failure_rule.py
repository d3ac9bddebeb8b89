"""The rule that separates failed jobs from the others: one or two conditions on parameters or machines.

Of many rules some fit by chance. So the best one is offered only if Fisher's exact test, times the number of rules,
says that chance would hardly make it. Rules that are left out for holding for few of the failures
count, too: which those are depends on the failures.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import combinations
from math import comb, exp, lgamma
from typing import NamedTuple

from monkey.plan.text.describe import format_value
from monkey.spec.job.job_table import ABSENT, ParameterColumn, ParameterValue

#: Failures below which nothing is said.
FEWEST = 3
#: Intervals that the values of a parameter are cut into at most.
_CUTS = 32
#: Numbers up to which a value between others has a rule of its own.
_FEW_NUMBERS = 8
#: A rule holds for at least so many of the failures, and at least so many of the jobs it holds for have failed.
_LEAST_RECALL, _LEAST_PRECISION = 0.8, 0.5
#: What a second condition has to add to F1.
_COST_OF_AND = 0.02
#: How likely chance may be, after the correction for the number of rules.
_CHANCE = 0.01
#: Conditions that are paired at most, those that fit best alone: of more, pairs would take seconds.
_PAIRED = 400


class RuleCondition(NamedTuple):
    """One condition of a rule: `batch >= 256`."""

    name: str
    #: ">=", "<" or "==".
    operator: str
    value: ParameterValue

    def holds(self, value: ParameterValue) -> bool:
        """Does it hold for this value of the parameter?"""
        if self.operator == "==":
            return value == self.value and isinstance(value, bool) is isinstance(self.value, bool)
        assert isinstance(value, int | float) and isinstance(self.value, int | float)  # only numbers are cut
        return value >= self.value if self.operator == ">=" else value < self.value

    def __str__(self) -> str:
        """Say it as `--where` reads it."""
        text = repr(self.value) if isinstance(self.value, str) else format_value(self.value)
        return f"{self.name} {self.operator} {text}"


@dataclass(frozen=True)
class FailureRule:
    """A rule, and how many jobs failed where it holds and elsewhere."""

    conditions: tuple[RuleCondition, ...]
    failed_inside: int
    inside: int
    failed_outside: int
    outside: int
    #: The probability that chance makes such a rule, corrected for the number of rules that there are.
    chance: float

    def __str__(self) -> str:
        """Say it: "17 of 17 with batch >= 256; 0 of 103 elsewhere (p = 2e-16)"."""
        inside = f"{self.failed_inside:,} of {self.inside:,} with {' and '.join(map(str, self.conditions))}"
        chance = f"p = {self.chance:.0e}" if self.chance >= 1e-99 else "p < 1e-99"
        return f"{inside}; {self.failed_outside:,} of {self.outside:,} elsewhere ({chance})"


class _Atom(NamedTuple):
    condition: RuleCondition
    #: Bit i: it holds for the i-th job.
    bits: int


def find_failure_rule(
    columns: Mapping[str, ParameterColumn], failed: Sequence[int], ended: Sequence[int]
) -> FailureRule | None:
    """Return the rule that separates the failed jobs from the others that ended; None where chance may make it.

    `failed`, `ended`: places in the columns; the failed ones are among those that ended.
    """
    jobs, failures = len(ended), len(failed)
    if failures < FEWEST or failures == jobs:
        return None
    bad = set(failed)
    lost = _gather_bits([at in bad for at in ended])
    alone, wide = 0, list[_Atom]()
    for name, column in columns.items():
        count, found = _list_atoms(name, column, failed, ended)
        alone += count
        wide += [atom for atom in found if (atom.bits & lost).bit_count() >= _LEAST_RECALL * failures]
    scored: list[_Scored] = [(_score(atom.bits, lost, failures), (atom.condition,), atom.bits) for atom in wide]
    best = max(scored, key=lambda each: each[0], default=None)
    best = _find_pair(wide, lost, failures, best[0] if best else 0.0) or best
    if best is None:
        return None
    _, conditions, bits = best
    inside, hit = bits.bit_count(), (bits & lost).bit_count()
    chance = min(1.0, _test_exactly(hit, inside, failures, jobs) * (alone + comb(alone, 2)))
    if chance > _CHANCE or hit < _LEAST_PRECISION * inside:
        return None
    return FailureRule(conditions, hit, inside, failures - hit, jobs - inside, chance)


def _score(bits: int, lost: int, failures: int) -> float:
    """Return F1: the harmonic mean of precision and recall."""
    return 2 * (bits & lost).bit_count() / (bits.bit_count() + failures)


_Scored = tuple[float, tuple[RuleCondition, ...], int]


def _find_pair(wide: Sequence[_Atom], lost: int, failures: int, alone: float) -> _Scored | None:
    """Return the best pair of conditions that is better than what one of them says alone."""
    chosen = nlargest(_PAIRED, wide, key=lambda atom: _score(atom.bits, lost, failures))
    best, found = alone + 1e-12, None
    for one, other in combinations(chosen, 2):
        both = one.bits & other.bits
        if both in (one.bits, other.bits):
            continue
        hit = (both & lost).bit_count()
        if hit < _LEAST_RECALL * failures:
            continue
        score = 2 * hit / (both.bit_count() + failures) - _COST_OF_AND
        if score > best:
            best, found = score, (score, (one.condition, other.condition), both)
    return found


def _list_atoms(
    name: str, column: ParameterColumn, failed: Sequence[int], ended: Sequence[int]
) -> tuple[int, list[_Atom]]:
    """Return how many conditions there are on a parameter, and those that may hold for enough of the failures."""
    index, values = column.index, column.values
    chosen = [index[at] for at in ended]
    used = set(chosen) - {ABSENT}
    if all(type(values[each]) in (int, float) for each in used):
        return _cut_numbers(name, column, used, chosen)
    if len(used) < 2:
        return 0, []
    hit = Counter(index[at] for at in failed)
    wide = [each for each in sorted(used) if hit[each] >= _LEAST_RECALL * len(failed)]
    return len(used), [
        _Atom(RuleCondition(name, "==", values[each]), _gather_bits([one == each for one in chosen])) for each in wide
    ]


def _cut_numbers(name: str, column: ParameterColumn, used: set[int], chosen: Sequence[int]) -> tuple[int, list[_Atom]]:
    """Return the same of a parameter whose values are numbers; `chosen`: the value's place for each ended job."""
    numbers: list[float] = sorted({column.values[each] for each in used})  # type: ignore[misc]  # these are numbers
    if len(numbers) < 2:
        return 0, []
    drawn = len(numbers) > _CUTS
    cuts = [len(numbers) * i // _CUTS for i in range(1, _CUTS)] if drawn else list(range(1, len(numbers)))
    starts = [numbers[at] for at in cuts]
    between = {each: bisect_right(starts, column.values[each]) for each in used}  # type: ignore[type-var]  # a number
    # Bits of the jobs in each interval, then those from each cut on. A byte for each job is its interval: what works on
    # bytes is as quick as memory.
    intervals = bytes(map({**between, ABSENT: 255}.__getitem__, reversed(chosen)))
    tables = [(b"0" * place + b"1").ljust(256, b"0") for place in range(len(cuts) + 1)]
    bits = [int(intervals.translate(table), 2) for table in tables]
    present = above = 0
    for part in bits:
        present |= part
    found = []
    for i in reversed(range(len(cuts))):
        above |= bits[i + 1]
        cut = _shorten(starts[i], numbers[cuts[i] - 1]) if drawn else starts[i]
        found += [_Atom(RuleCondition(name, ">=", cut), above), _Atom(RuleCondition(name, "<", cut), present & ~above)]
    found.reverse()
    if len(numbers) <= _FEW_NUMBERS:
        found += [_Atom(RuleCondition(name, "==", numbers[i]), bits[i]) for i in range(1, len(numbers) - 1)]
    return len(found), found


def _shorten(number: float, below: float) -> float:
    """Return the number of fewest digits that is above `below` and not above `number`: it cuts at the same place."""
    for digits in range(1, 17):
        short = float(f"{number:.{digits}g}")
        if below < short <= number:
            return int(short) if isinstance(number, int) else short
    return number


def _gather_bits(flags: Sequence[bool]) -> int:
    """Return the flags as bits, the first one lowest."""
    # Of a hundred thousand jobs, a loop would take ten times as long.
    return int(bytes(reversed(flags)).translate(b"01" + bytes(254)), 2)


def _test_exactly(hit: int, inside: int, failures: int, jobs: int) -> float:
    """Return the probability that at least `hit` of `inside` jobs are among the failures (Fisher's exact test)."""
    whole = _count_choices(jobs, inside)
    return sum(
        exp(_count_choices(failures, k) + _count_choices(jobs - failures, inside - k) - whole)
        for k in range(hit, min(inside, failures) + 1)
        if inside - k <= jobs - failures
    )


def _count_choices(of: int, chosen: int) -> float:
    """Return the logarithm of the number of ways to choose."""
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)
