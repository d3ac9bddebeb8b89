"""What is advised for every way in which a sweep can stand."""

from __future__ import annotations

from itertools import product

import pytest

from monkey.plan.advice import SweepSituation, is_blocked, suggest_next_step, suggest_reopening


@pytest.mark.parametrize(
    ("at", "advice"),
    [
        (SweepSituation("s"), "`monkey results s` shows them"),
        (SweepSituation("s", unfinished=2), "`monkey status -w s` watches"),
        (SweepSituation("s", 1, 2), "`monkey status -w s` watches, `monkey retry s` tries again what failed"),
        (SweepSituation("s", failed=1), "`monkey retry s` tries again"),
        (
            SweepSituation("s", failed=1, lacks_data=True),
            "`monkey push` where the data is, then `monkey retry s`, tries again",
        ),
        (SweepSituation("s", unfinished=2, paused=True), "`monkey resume s` goes on"),
        (
            SweepSituation("s", 1, 2, cancelled=True),
            "`monkey resume s` goes on with the rest, `monkey retry s` tries again what failed",
        ),
        (SweepSituation("s", failed=1, paused=True), "`monkey retry s`, then `monkey resume s`, tries again"),
        (
            SweepSituation("s", 1, 2, cancelled=True, fail_fast=True),
            "`monkey retry s` tries again and goes on with the rest",
        ),
        (
            SweepSituation("s", 1, 2, paused=True, fail_fast=True),
            "`monkey retry s`, then `monkey resume s`, tries again",
        ),
    ],
)
def test_each_standing_has_its_advice(at: SweepSituation, advice: str) -> None:
    assert suggest_next_step(at) == advice


@pytest.mark.parametrize("flags", list(product([False, True], repeat=6)))
def test_what_is_advised_opens_all_that_is_shut(flags: tuple[bool, ...]) -> None:
    """Whatever keeps a sweep, the advice has the verb that ends it: fold's rules, told by hand."""
    failed, unfinished, paused, cancelled, fail_fast, lacks = flags
    at = SweepSituation("s", int(failed), int(unfinished), paused, cancelled, fail_fast, failed and lacks)
    said = suggest_next_step(at)
    assert ("`monkey retry s`" in said) == failed, "the only way to have a failed job tried again"
    assert ("`monkey push`" in said) == (failed and lacks)
    if paused and (unfinished or failed):
        assert "`monkey resume s`" in said, "no other verb ends a pause"
    if is_blocked(at):
        assert "resume" in said or "retry" in said
        assert (suggest_reopening(at) == "`monkey retry s`") == (failed and fail_fast)


@pytest.mark.parametrize("flags", list(product([False, True], repeat=4)))
def test_what_has_expired_needs_time_besides_all_else(flags: tuple[bool, ...]) -> None:
    failed, paused, cancelled, fail_fast = flags
    at = SweepSituation("s", int(failed), 2, paused, cancelled, fail_fast, over=True)
    said = suggest_next_step(at)
    assert said.startswith("`monkey extend s 6h`") and is_blocked(at)
    assert ("`monkey retry s`" in said) == failed
    assert ("`monkey resume s`" in said) == (paused or (cancelled and not failed)), "retry opens what is cancelled"
