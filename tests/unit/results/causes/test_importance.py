"""Importance: Optuna's figures for the same jobs, and a floor that parameters without effect do not pass."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from math import ceil, log10
from typing import Any

import pytest

from monkey.errors import MonkeyError
from monkey.results.causes.importance import (
    FEWEST_JOBS,
    ParameterGrid,
    measure_divergence,
    measure_importance,
    rank_parameters,
    serialize_importance,
)
from tests.unit.plan.making import table
from tests.unit.results.sample_results import Job, accs, made, metric

#: Jobs, points of "a", kinds of "c", seed → what PedAnovaImportanceEvaluator of Optuna 5.0.0 says of a, b and c, where
#: a and b are an IntDistribution from 0, and c is a CategoricalDistribution.
OPTUNA = {
    (36, 5, 2, 1): (0.005870206187, 0.000250747836, 0.000389451197),
    (60, 12, 3, 2): (0.010251262709, 0.007709962402, 0.001026903351),
    (200, 50, 5, 3): (0.007177399624, 0.000264402458, 0.001527643134),
    (1000, 50, 2, 4): (0.00661734046, 2.2920576e-05, 0.002474550471),
}


@pytest.mark.parametrize("case", OPTUNA, ids=str)
def test_figures_are_those_of_optuna(case: tuple[int, int, int, int]) -> None:
    size, points, kinds, seed = case
    dice, rows, losses = random.Random(seed), [], []
    for _ in range(size):
        row = (dice.randrange(points), dice.randrange(4), dice.randrange(kinds))
        rows.append(row)
        losses.append((row[0] / points - 0.3) ** 2 + 0.3 * (row[2] == 0) + dice.gauss(0, 0.1))
    worst = sorted(losses)[ceil(0.1 * size) - 1]
    best = [at for at, loss in enumerate(losses) if loss <= worst]
    grids = zip(zip(*rows, strict=True), (points, 4, kinds), (True, True, False), strict=True)
    # Optuna's has the square of the share of the best as a factor, the same for all parameters.
    found = [measure_divergence(ParameterGrid(*grid), best) * (len(best) / size) ** 2 for grid in grids]
    assert found == pytest.approx(OPTUNA[case], rel=1e-6, abs=1e-11)


def sweep(size: int, dice: random.Random) -> tuple[list[dict[str, Any]], list[float]]:
    jobs = [
        {"lr": 10 ** dice.uniform(-4, 0), "batch": dice.choice([32, 64, 128]), "opt": dice.choice("ab"), "seed": at % 3}
        for at in range(size)
    ]
    return jobs, [(log10(job["lr"]) + 2) ** 2 + dice.gauss(0, 0.3) for job in jobs]


def measure(jobs: Sequence[dict[str, Any]], losses: Sequence[float]) -> dict[str, tuple[float, bool]]:
    found = measure_importance(table(jobs).columns, range(len(jobs)), losses)
    return {each.name: (each.share, each.visible) for each in found}


def test_what_has_no_effect_is_seldom_visible_and_what_has_one_is() -> None:
    dice, visible, times = random.Random(1), 0, 12
    for _ in range(times):
        found = measure(*sweep(120, dice))
        assert next(iter(found)) == "lr" and found["lr"][1] and found["lr"][0] > 0.5
        visible += sum(found[name][1] for name in ("batch", "opt", "seed"))
    assert visible <= 0.1 * 3 * times


@pytest.mark.slow
@pytest.mark.parametrize(("size", "times"), [(36, 60), (120, 20)])
def test_of_parameters_without_effect_one_in_fifty_is_visible(size: int, times: int) -> None:
    dice = random.Random(size)
    found = [measure(*sweep(size, dice)) for _ in range(times)]
    assert sum(each[name][1] for each in found for name in ("batch", "opt", "seed")) <= 0.04 * 3 * times


def test_a_scale_makes_no_difference() -> None:
    jobs, losses = sweep(80, random.Random(2))
    scaled = [{**job, "lr": log10(job["lr"])} for job in jobs]
    assert measure(jobs, losses)["lr"] == pytest.approx(measure(scaled, losses)["lr"])


def test_shares_add_up_and_the_same_jobs_give_the_same() -> None:
    jobs, losses = sweep(60, random.Random(3))
    found = measure(jobs, losses)
    assert sum(share for share, _ in found.values()) == pytest.approx(1) and found == measure(jobs, losses)


def test_a_constant_metric_shows_nothing() -> None:
    jobs, _ = sweep(60, random.Random(4))
    assert not any(visible for _, visible in measure(jobs, [1.0] * 60).values())


def test_parameters_that_some_jobs_lack_or_that_hold_lists_are_measured() -> None:
    jobs, losses = sweep(90, random.Random(5))
    odd = [{**job, "net": [at % 2]} | ({"drop": at % 7} if at % 3 else {}) for at, job in enumerate(jobs)]
    assert {"net", "drop"} <= measure(odd, losses).keys()
    assert measure([{"x": 1}] * 40, list(map(float, range(40)))) == {}, "what does not vary"


def test_a_thousand_jobs_take_half_a_second() -> None:
    jobs, losses = sweep(1000, random.Random(6))
    columns = table(jobs).columns
    started = time.process_time()
    measure_importance(columns, range(1000), losses)
    assert time.process_time() - started < 0.5


def test_it_is_of_jobs_that_count_by_the_goal_of_the_spec() -> None:
    jobs, losses = sweep(60, random.Random(7))
    seen = [Job(metrics={"acc": metric(-loss)}) for loss in losses]
    bad = [Job("failed", metrics={"acc": metric(99)})] * 20
    results = made([*jobs, *[{**job, "opt": "never"} for job in jobs[:20]]], [*seen, *bad])
    assert [(row.name, row.share) for row in rank_parameters(results)] == [
        (name, share) for name, (share, _) in measure(jobs, losses).items()
    ]
    assert serialize_importance(rank_parameters(results)[0])["parameter"] == "lr"


def test_too_few_jobs_say_so() -> None:
    jobs, _ = sweep(FEWEST_JOBS, random.Random(8))
    with pytest.raises(MonkeyError, match="expected at least 30 jobs that count and have the metric 'acc', found 29"):
        rank_parameters(made(jobs, [*accs(*range(29)), Job()]))
    with pytest.raises(MonkeyError, match="the spec names none"):
        rank_parameters(made(jobs, accs(*range(30)), metric=None))
