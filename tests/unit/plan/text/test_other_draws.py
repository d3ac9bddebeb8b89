"""What a plan says where the spec's parameters are as applied, and its jobs are not: another version drew them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import ObservedSweep
from tests.unit.plan.making import Revision, grid, seen, want
from tests.unit.plan.planning import planned

SPEC = "method: random\nrun_cap: 3\nparameters: {lr: {qrandint: [0, 10, 2]}, opt: [adam]}\n"
NOW = grid(lr=[0, 4, 10], opt=["adam"])
NOTE = "the spec's parameters are as applied, but this version of monkey makes other values of lr: {} new, {} removed"


def notes(before: list[dict[str, Any]], text: str = SPEC, spec: str = SPEC, **options: Any) -> tuple[str, ...]:
    """Return what the plan notes: `text` was applied and made `before`; `spec` is the file of now."""
    state: ObservedSweep = seen(before, succeeded=range(len(before)))
    assert isinstance(state.applied, Revision)
    state = replace(state, applied=replace(state.applied, spec_text=text))
    wanted: DesiredSweep = want(NOW, spec_text=spec, **options)
    return planned(wanted, state).notes


def test_jobs_that_another_version_draws_otherwise_are_explained() -> None:
    assert notes(grid(lr=[2, 4, 8], opt=["adam"])) == (NOTE.format(2, 2),)
    settings = "max_retries: 3 # more\n"
    assert notes(grid(lr=[2, 6, 8], opt=["adam"]), settings + SPEC) == (NOTE.format(3, 3),)


@pytest.mark.parametrize(
    "text",
    [
        SPEC.replace("[0, 10, 2]", "[0, 10, 4]"),
        SPEC.replace("run_cap: 3", "run_cap: 2"),
        SPEC.replace("[0, 10, 2]", "[0.0, 10, 2]"),
        f"seed: 1\n{SPEC}",
        f"{SPEC}exclude: [{{lr: 2}}]\n",
        "",
        "{",
        "[]",
    ],
)
def test_a_spec_that_asks_for_other_jobs_explains_itself(text: str) -> None:
    assert notes(grid(lr=[2, 4, 8], opt=["adam"]), text) == ()


def test_the_same_jobs_more_jobs_and_previews_have_no_such_note() -> None:
    assert notes(NOW) == notes(NOW[:2]) == ()
    assert notes(grid(lr=[2, 4, 8], opt=["adam"]), about="a preview") == ()
    assert notes(grid(lr=[2, 4, 8], opt=["adam"]), spec="") == (), "a rollback has no file"
