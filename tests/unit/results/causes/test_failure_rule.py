"""The rule that separates failures: it is named where it was planted, and not offered where chance failed jobs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import Any

import pytest

from monkey.results.causes.failure_rule import FailureRule, RuleCondition, _test_exactly, find_failure_rule
from monkey.spec.parameters.conditions import parse_condition
from tests.unit.plan.making import table

Job = Mapping[str, Any]
Fails = Callable[[Job, random.Random], bool]


def sweep(size: int, dice: random.Random) -> list[Job]:
    return [
        {
            "batch": dice.choice([32, 64, 128, 256, 512]),
            "lr": 10 ** dice.uniform(-5, -1),
            "model": dice.choice(["s", "m", "l"]),
            "seed": dice.randrange(5),
            "drop": dice.choice([0, 0.1, 0.2]),
            "opt": dice.choice(["sgd", "adam"]),
            "layers": dice.randint(2, 12),
            "wd": 10 ** dice.uniform(-6, -2),
        }
        for _ in range(size)
    ]


def rule_of(jobs: Sequence[Job], failed: Sequence[bool]) -> FailureRule | None:
    columns = table(jobs).columns
    return find_failure_rule(columns, [at for at, bad in enumerate(failed) if bad], range(len(jobs)))


def offered(size: int, fails: Fails, times: int, seed: int) -> list[tuple[str, ...]]:
    """Return the conditions of the rules offered in so many sweeps of that size; () for none."""
    dice, found = random.Random(seed), []
    for _ in range(times):
        jobs = sweep(size, dice)
        rule = rule_of(jobs, [fails(job, dice) for job in jobs])
        found.append(tuple(map(str, rule.conditions)) if rule else ())
    return found


def by_chance(job: Job, dice: random.Random) -> bool:
    return dice.random() < 0.15


def by_batch(job: Job, dice: random.Random) -> bool:
    return (job["batch"] >= 256 and dice.random() < 0.95) or dice.random() < 0.02


def by_pair(job: Job, dice: random.Random) -> bool:
    return job["batch"] >= 256 and job["model"] == "l"


def count(found: Sequence[tuple[str, ...]], *conditions: str) -> int:
    return sum(set(each) == set(conditions) for each in found)


@pytest.mark.parametrize(("size", "times"), [(40, 30), (120, 20), (1000, 3)])
def test_of_failures_by_chance_no_rule_is_offered(size: int, times: int) -> None:
    assert not any(offered(size, by_chance, times, seed=5))


@pytest.mark.parametrize(("size", "times", "exactly"), [(40, 30, 0.7), (120, 20, 0.95), (1000, 3, 1)])
def test_a_planted_rule_is_named_always_and_mostly_exactly(size: int, times: int, exactly: float) -> None:
    found = offered(size, by_batch, times, seed=2)
    assert all("batch >= 256" in each for each in found), found
    assert count(found, "batch >= 256") >= exactly * times


@pytest.mark.parametrize(("size", "times", "often"), [(40, 30, 0.3), (120, 20, 0.95), (1000, 3, 1)])
def test_a_planted_pair_is_found(size: int, times: int, often: float) -> None:
    assert count(offered(size, by_pair, times, seed=3), "batch >= 256", "model == 'l'") >= often * times


@pytest.mark.slow
def test_of_six_hundred_sweeps_with_failures_by_chance_none_is_offered_a_rule() -> None:
    assert not any(
        any(offered(size, by_chance, times, seed=size)) for size, times in ((40, 350), (120, 240), (1000, 10))
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", [40, 120])
def test_of_a_hundred_planted_rules_each_is_named(size: int) -> None:
    found = offered(size, by_batch, 100, seed=size)
    assert sum("batch >= 256" in each for each in found) >= {40: 0.98}.get(size, 1) * 100
    assert count(found, "batch >= 256") >= {40: 0.7, 120: 0.98}[size] * 100
    pairs = offered(size, by_pair, 100, seed=size)
    assert count(pairs, "batch >= 256", "model == 'l'") >= {40: 0.4, 120: 0.99}[size] * 100


def test_ten_thousand_jobs_take_half_a_second_of_cpu() -> None:
    jobs = sweep(10_000, random.Random(4))
    columns = table(jobs).columns
    failed = [at for at, job in enumerate(jobs) if job["batch"] >= 256 and job["lr"] > 1e-2]
    started = time.process_time()
    rule = find_failure_rule(columns, failed, range(len(jobs)))
    assert time.process_time() - started <= 0.5
    assert rule is not None and {each.name for each in rule.conditions} == {"batch", "lr"}


def test_a_rule_says_how_many_failed_inside_and_elsewhere() -> None:
    jobs = [{"batch": batch, "seed": seed} for seed in range(40) for batch in (32, 64, 256)]
    rule = rule_of(jobs, [job["batch"] == 256 and job["seed"] < 40 for job in jobs])
    assert rule is not None
    assert str(rule).startswith("40 of 40 with batch >= 256; 0 of 80 elsewhere (p = ")
    assert (rule.inside, rule.failed_inside, rule.outside, rule.failed_outside) == (40, 40, 80, 0)


def test_a_machine_is_a_cause_like_any_other() -> None:
    jobs = [{"lr": lr / 100, "host": f"gpu{lr % 4}"} for lr in range(60)]
    rule = rule_of(jobs, [job["host"] == "gpu3" for job in jobs])
    assert rule is not None and [str(each) for each in rule.conditions] == ["host == 'gpu3'"]


def test_a_drawn_number_is_cut_at_the_shortest_that_separates_the_same_jobs() -> None:
    jobs = [{"lr": (at + 0.123456) / 1000} for at in range(320)]
    rule = rule_of(jobs, [job["lr"] > 0.21 for job in jobs])
    assert rule is not None
    [condition] = rule.conditions
    assert condition.operator == ">=" and len(str(condition.value)) <= 5
    assert rule.inside == sum(condition.holds(job["lr"]) for job in jobs)


@pytest.mark.parametrize(
    ("jobs", "failed"),
    [
        ([{"a": 1}] * 10, [True] * 10),  # all
        ([{"a": at} for at in range(10)], [at > 7 for at in range(10)]),  # two alone
        ([{"a": 1}, *[{"a": 2}] * 9], [False] * 10),  # none
        ([{}] * 10, [at > 5 for at in range(10)]),  # nothing to tell them apart
    ],
)
def test_nothing_is_said_where_nothing_can_be(jobs: list[Job], failed: list[bool]) -> None:
    assert rule_of(jobs, failed) is None


def test_values_of_any_kind_are_told_apart() -> None:
    values: list[Any] = [True, 1, "1", None, [1, 2], {"a": 1}]
    for odd in values:
        jobs = [{"p": value, "n": n} for value in values for n in range(12)]
        rule = rule_of(jobs, [repr(job["p"]) == repr(odd) for job in jobs])
        assert rule is not None and len(rule.conditions) == 1 and repr(rule.conditions[0].value) == repr(odd)
        assert rule.inside == rule.failed_inside == 12
    assert not RuleCondition("p", "==", True).holds(1)


def test_jobs_without_a_parameter_are_on_neither_side_of_a_cut() -> None:
    jobs: list[Job] = [{"n": n} if n % 2 else {"n": n, "drop": n / 100} for n in range(60)]
    rule = rule_of(jobs, ["drop" in job and job["drop"] < 0.3 for job in jobs])
    assert rule is not None and str(rule).startswith("15 of 15 with drop < 0.3")


def test_the_test_is_exact() -> None:
    for jobs, failures, inside in ((20, 7, 9), (12, 11, 3), (30, 3, 25)):
        for hit in range(min(failures, inside) + 1):
            exact = sum(
                comb(failures, k) * comb(jobs - failures, inside - k) for k in range(hit, min(failures, inside) + 1)
            )
            assert _test_exactly(hit, inside, failures, jobs) == pytest.approx(exact / comb(jobs, inside), rel=1e-9)


def test_a_text_of_any_kind_is_quoted_as_conditions_read_it() -> None:
    for value in ("it's", 'a "b"', "\\", "a\nb", "\x1b[0m"):
        said = str(RuleCondition("p", "==", value))
        assert parse_condition(said, {"p"}).holds({"p": value}) and said.isprintable()
