"""What is advised for every way in which a sweep can stand."""

from __future__ import annotations

from itertools import product

import pytest

from monkey.plan.advice import Standing, helps, opens, stopped


@pytest.mark.parametrize(
    ("at", "advice"),
    [
        (Standing("s"), "`monkey results s` shows them"),
        (Standing("s", unfinished=2), "`monkey status -w s` watches"),
        (Standing("s", 1, 2), "`monkey status -w s` watches, `monkey retry s` tries again what failed"),
        (Standing("s", failed=1), "`monkey retry s` tries again"),
        (
            Standing("s", failed=1, lacks_data=True),
            "`monkey push` where the data is, then `monkey retry s`, tries again",
        ),
        (Standing("s", unfinished=2, paused=True), "`monkey resume s` goes on"),
        (
            Standing("s", 1, 2, cancelled=True),
            "`monkey resume s` goes on with the rest, `monkey retry s` tries again what failed",
        ),
        (Standing("s", failed=1, paused=True), "`monkey retry s`, then `monkey resume s`, tries again"),
        (Standing("s", 1, 2, cancelled=True, fail_fast=True), "`monkey retry s` tries again and goes on with the rest"),
        (Standing("s", 1, 2, paused=True, fail_fast=True), "`monkey retry s`, then `monkey resume s`, tries again"),
    ],
)
def test_each_standing_has_its_advice(at: Standing, advice: str) -> None:
    assert helps(at) == advice


@pytest.mark.parametrize("flags", list(product([False, True], repeat=6)))
def test_what_is_advised_opens_all_that_is_shut(flags: tuple[bool, ...]) -> None:
    """Whatever keeps a sweep, the advice has the verb that ends it: fold's rules, told by hand."""
    failed, unfinished, paused, cancelled, fail_fast, lacks = flags
    at = Standing("s", int(failed), int(unfinished), paused, cancelled, fail_fast, failed and lacks)
    said = helps(at)
    assert ("`monkey retry s`" in said) == failed, "the only way to have a failed job tried again"
    assert ("`monkey push`" in said) == (failed and lacks)
    if paused and (unfinished or failed):
        assert "`monkey resume s`" in said, "no other verb ends a pause"
    if stopped(at):
        assert "resume" in said or "retry" in said
        assert (opens(at) == "`monkey retry s`") == (failed and fail_fast)


@pytest.mark.parametrize("flags", list(product([False, True], repeat=4)))
def test_what_has_expired_needs_time_besides_all_else(flags: tuple[bool, ...]) -> None:
    failed, paused, cancelled, fail_fast = flags
    at = Standing("s", int(failed), 2, paused, cancelled, fail_fast, over=True)
    said = helps(at)
    assert said.startswith("`monkey extend s 6h`") and stopped(at)
    assert ("`monkey retry s`" in said) == failed
    assert ("`monkey resume s`" in said) == (paused or (cancelled and not failed)), "retry opens what is cancelled"
