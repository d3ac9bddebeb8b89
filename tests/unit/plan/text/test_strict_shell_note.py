"""What a plan says once of a script that an earlier version of monkey applied: it stops at failures now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.spec.job.recipe import Recipe
from tests.unit.plan.making import RECIPE, Revision, grid, seen, want
from tests.unit.plan.planning import planned

JOBS = grid(lr=[1, 2])
NOTE = "ends a job where a part of its command fails"


def notes(command: str | list[str], *, strict: bool = False, succeeded: int = 1, jobs: int = 2) -> bool:
    """Return whether the plan of a sweep of two applied jobs, of which so many succeeded, has the note."""
    recipe: Recipe = replace(RECIPE, command=command)
    state = seen(JOBS, recipe=recipe, succeeded=range(succeeded))
    assert isinstance(state.applied, Revision)
    state = replace(state, applied=replace(state.applied, strict=strict))
    return any(NOTE in note for note in planned(want(grid(lr=range(1, jobs + 1)), recipe), state).notes)


@pytest.mark.parametrize("command", ["a; b", "a\nb", "a | tee b", "a && b; c", "$X | b\n"])
def test_a_script_of_several_parts_that_an_earlier_version_applied_is_noted(command: str) -> None:
    assert notes(command)
    assert not notes(command, strict=True), "once: a revision of this version knows it"
    assert not notes(command, succeeded=2), "no job of it will run again"
    assert notes(command, succeeded=2, jobs=3), "a new one will"


@pytest.mark.parametrize(
    "command", ["python a.py", "a && b", "a || b", "a > log", "a $X\n", "python -c 'a; b | c'", ["a", ";", "b"]]
)
def test_other_commands_run_as_before(command: str | list[str]) -> None:
    assert not notes(command)
