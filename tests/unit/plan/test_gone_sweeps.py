"""Sweeps whose spec is gone: which are shown, and which are cancelled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.plan.gone_sweeps import RUN_SOURCE, GoneSweep, find_gone_sweeps
from monkey.plan.observed import PRUNED, ObservedProject, ObservedSweep
from tests.unit.plan.making import Revision, grid, seen, want
from tests.unit.plan.planning import planned

JOBS = grid(lr=[0.01, 0.1], seed=range(3))
ON_MAIN = {"commit": "a" * 40, "branch": "main", "dirty": False}
OLD = seen(JOBS, running=[0, 1], succeeded=[2], git=ON_MAIN, head=5, applied_at=3)


def gone(sweep: ObservedSweep, name: str = "b", branch: str | None = "main") -> tuple[GoneSweep, ...]:
    return find_gone_sweeps(ObservedProject({name: sweep}), {"a"}, branch, prune=True)


def from_(**options: object) -> ObservedSweep:
    assert isinstance(OLD.applied, Revision)
    return replace(OLD, applied=replace(OLD.applied, **options))


def test_sweep_without_a_spec_is_shown_and_pruned_if_that_is_asked() -> None:
    (found,) = gone(OLD)
    assert found == GoneSweep("b", "specs/digits.yaml", 3, 2, 3, pruned=True)
    (shown,) = find_gone_sweeps(ObservedProject({"a": OLD, "b": OLD}), {"a"}, "main", prune=False)
    assert shown == replace(found, pruned=False)


@pytest.mark.parametrize(
    "sweep",
    [
        replace(OLD, cancelled="too dear"),
        replace(OLD, over=True, expires=1.0),
        replace(OLD, foreign=True),
        seen(JOBS, succeeded=range(5), failed=[5], git=ON_MAIN),
        replace(OLD, applied=None),
        from_(source=RUN_SOURCE),
        from_(git={**ON_MAIN, "branch": "feature"}),
    ],
)
def test_what_ended_or_came_from_elsewhere_is_left_alone(sweep: ObservedSweep) -> None:
    assert not gone(sweep)


@pytest.mark.parametrize(
    ("name", "count"),
    [("pr-12.digits", 0), ("pr-12", 1), ("pr-x.digits", 1), ("check-3.digits", 1), ("check-3.a", 0), ("check-3", 1)],
)
def test_previews_are_left_alone_and_checks_go_with_their_sweep(name: str, count: int) -> None:
    assert len(gone(OLD, name)) == count


@pytest.mark.parametrize(
    ("sweep", "branch"), [(from_(git={**ON_MAIN, "branch": None}), "main"), (from_(git=None), "main"), (OLD, None)]
)
def test_sweep_of_an_unknown_branch_is_only_shown(sweep: ObservedSweep, branch: str | None) -> None:
    (found,) = gone(sweep, branch=branch)
    assert "unknown" in found.kept and not found.pruned


def test_sweep_comes_back_with_its_spec() -> None:
    assert not planned(want(JOBS), OLD).revises
    assert not planned(want(JOBS), replace(OLD, cancelled="too dear")).revises
    assert planned(want(JOBS), replace(OLD, cancelled=f"{PRUNED} (commit abc)")).revises
