"""Commands that differ only in parameters that were renamed or added."""

from __future__ import annotations

import pytest

from monkey.plan.adoption.earlier_commands import is_same_command

RENAMED = {"lr": "learning_rate"}


@pytest.mark.parametrize(
    "before, now",
    [
        ("a --lr {lr} --x", "a --lr {learning_rate} --x"),
        ("a --lr {lr}", "a --learning_rate {learning_rate}"),
        ("a --lr={lr}", "a --learning-rate={learning_rate}"),
        ("a -lr {lr}  b", "a -lr {learning_rate} b"),
        ("a", "a"),
        ("a {{lr}} {lr}", "a {{lr}} {learning_rate}"),
    ],
)
def test_a_renamed_parameter_is_the_same_command(before: str, now: str) -> None:
    assert is_same_command(before, now, RENAMED, ())
    assert is_same_command(before.split(), now.split(), RENAMED, ())
    assert not is_same_command(before.split(), now, RENAMED, ())
    assert is_same_command(before, now, {}, ()) == (before == now)


@pytest.mark.parametrize(
    "before, now",
    [
        ("a --lr {lr}", "a --lr {learning_rate} --epochs 3"),
        ("a --lr {lr}", "b --lr {learning_rate}"),
        ("a --lr {lr}", "a --rate {learning_rate}"),
        ("a {lr} {n}", "a {n} {learning_rate}"),
        ("a {{lr}}", "a {{learning_rate}}"),
    ],
)
def test_any_other_change_is_another_command(before: str, now: str) -> None:
    assert not is_same_command(before, now, RENAMED, ())


@pytest.mark.parametrize("now", ["a --m {m} b", "a --m={m} b", "a m={m} b", "a {m} b", "a b", "a -m {m} b"])
def test_an_added_parameter_goes_with_its_flag(now: str) -> None:
    assert is_same_command("a b", now, {}, ["m"])
    assert not is_same_command("a b c", now, {}, ["m"])


@pytest.mark.parametrize("now", ["a b --m {m},{n}", "a b --m x --n {n}", "a --k=v b {{m}}"])
def test_what_passes_more_than_the_added_parameter_stays(now: str) -> None:
    assert not is_same_command("a b", now, {}, ["m"])
