"""Verdicts on checks: ends in, verdict and differences out."""

from __future__ import annotations

import math
from typing import Any

import pytest

from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.results.checks.check_verdict import (
    CheckTolerance,
    CheckVerdict,
    compare_ends,
    find_parting_step,
)
from monkey.results.checks.fact_differences import FactDifference, list_fact_differences
from monkey.results.curves.curve import Curve

EXACT = CheckTolerance()
A, B = "a" * 64, "b" * 64


def end(outputs: dict[str, str] | None = None, **last: Any) -> EndEntry:
    metrics = {name: {"last": value} for name, value in last.items()}
    return EndEntry(ClaimEnd.SUCCEEDED, "local/m/1", 1, metrics=metrics, outputs=outputs or {})


RECORDED = end({"model": A}, loss=0.5, seconds=3.0)


@pytest.mark.parametrize(
    "now, tolerance, verdict",
    [
        (RECORDED, EXACT, "identical"),
        (end({"model": A}, loss=0.5, seconds=4.0), EXACT, "differs"),
        (end({"model": A}, loss=0.5, seconds=4.0), CheckTolerance(ignored=["sec*"]), "identical"),
        (end({"model": A}, loss=0.5000001, seconds=3.0), CheckTolerance({"loss": 1e-6}), "equal within tolerance"),
        (end({"model": A}, loss=0.5000001, seconds=3.0), CheckTolerance({"": 1e-6}), "equal within tolerance"),
        (end({"model": A}, loss=0.5000001, seconds=3.0), CheckTolerance({"": 1e-6, "loss": 0.0}), "differs"),
        # Other bytes are borne out by metrics, where each has a tolerance; files that are missing never are.
        (end({"model": B}, loss=0.5, seconds=3.0), EXACT, "differs"),
        (end({"model": B}, loss=0.5, seconds=3.0), CheckTolerance({"": 1e-6}), "equal within tolerance"),
        (end({"model": B}, loss=0.5, seconds=3.0), CheckTolerance({"loss": 1e-6}), "differs"),
        (end({}, loss=0.5, seconds=3.0), CheckTolerance({"": 1e-6}), "differs"),
        (end({"model": B}, loss=0.5, seconds=3.0), CheckTolerance(ignored=["model"]), "identical"),
        # A metric that is missing, or diverged, is another one.
        (end({"model": A}, loss=0.5), CheckTolerance({"": 1.0}), "differs"),
        (end({"model": A}, loss=None, seconds=3.0), CheckTolerance({"": 1.0}), "differs"),
        (end({"model": A}, loss="0.5", seconds=3.0), EXACT, "differs"),
    ],
)
def test_the_verdict(now: EndEntry, tolerance: CheckTolerance, verdict: str) -> None:
    assert str(compare_ends(RECORDED, now, tolerance)[0]) == verdict


def test_metrics_that_diverged_both_times_are_the_same() -> None:
    assert compare_ends(end(loss=None), end(loss=None), EXACT)[0] is CheckVerdict.IDENTICAL
    assert compare_ends(end(loss=10**400), end(loss=10**400), EXACT)[0] is CheckVerdict.IDENTICAL
    assert compare_ends(end(), end({"x": A}), CheckTolerance({"": 1.0}))[0] is CheckVerdict.DIFFERS


def test_a_difference_has_both_values_and_their_distance() -> None:
    _, (loss,), (model,) = compare_ends(RECORDED, end({"model": B}, loss=0.25, seconds=3.0), EXACT)
    assert (loss.name, loss.recorded, loss.now, loss.delta, loss.within) == ("loss", 0.5, 0.25, -0.25, False)
    assert (model.path, model.recorded, model.now) == ("model", A, B)


def curve(*values: float, steps: list[int | None] | None = None) -> Curve:
    return Curve(steps or list(range(len(values))), list(values), [0.0] * len(values))


def test_curves_part_at_the_first_step_that_is_another() -> None:
    nan = math.nan
    assert find_parting_step(curve(1, nan, 3), curve(1, nan, 3)) is None
    assert find_parting_step(curve(1, 2, 3), curve(1, 2, 4)) == 2
    assert find_parting_step(curve(1, 2, nan), curve(1, 2, 3)) == 2
    assert find_parting_step(curve(1, 2), curve(1, 2, 3)) == 2
    assert find_parting_step(curve(1, 2, steps=[10, 20]), curve(1, 2, steps=[10, 30])) == 20
    assert find_parting_step(curve(1, steps=[None]), curve(2, steps=[None])) is None


def test_packages_are_named_by_their_own_names_and_first() -> None:
    recorded = {"lock": ["numpy==2.4.6", "six==1.0", "tool @ file:///x"], "python": "3.11.7", "cpus": 2}
    now = {"lock": ["numpy==2.5.0", "tool @ file:///x"], "python": "3.11.7", "cpus": 4, "gpus": ["H100"]}
    assert list_fact_differences(recorded, now) == [
        FactDifference("numpy", "2.4.6", "2.5.0"),
        FactDifference("six", "1.0", ""),
        FactDifference("gpus", "", '["H100"]'),
        FactDifference("cpus", "2", "4"),
    ]
