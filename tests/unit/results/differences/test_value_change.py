"""Values of two sides: which differ, by how much, and which are never shown."""

from __future__ import annotations

import pytest

from monkey.results.differences.value_change import NO_VALUE, ValueChange, compare_values

TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"


def test_values_differ_as_a_job_sees_them() -> None:
    before = {"same": [1, {"a": None}], "type": 1, "bool": 1, "gone": None, "nan": float("nan")}
    after = {"same": [1, {"a": None}], "type": 1.0, "bool": True, "new": 0}
    found = {one.name: (one.before, one.after) for one in compare_values(before, after)}
    assert found.keys() == {"type", "bool", "gone", "new", "nan"}
    assert found["gone"] == (None, NO_VALUE) and found["new"] == (NO_VALUE, 0)
    assert ValueChange("gone", None, NO_VALUE).to_json() == {"name": "gone", "a": None}


def test_no_secret_is_shown_though_it_differs() -> None:
    before = {"KEY": "opensesame", "TOKEN": "none", "PLAIN": "1", "SAME": "s"}
    after = {"KEY": "(secret)", "TOKEN": TOKEN, "PLAIN": "2", "SAME": "s"}
    found = compare_values(before, after, {"KEY", "SAME"})
    assert [one.name for one in found] == ["KEY", "TOKEN", "PLAIN"]
    assert "opensesame" not in str(found) and TOKEN not in str(found)
    assert "it holds a Hugging Face token" in found[1].after


@pytest.mark.parametrize(
    ("before", "after", "step"),
    [
        (1, 3.5, 2.5),
        (True, 2, None),
        ("nan", 1.0, None),
        (float("inf"), 1, None),
        (10**400, 0.5, None),
        (10**400, 1, None),
    ],
)
def test_the_step_between_numbers(before: object, after: object, step: float | None) -> None:
    assert ValueChange("loss", before, after).step == step
