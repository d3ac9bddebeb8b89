"""What a page gets of parameters: values, and the texts of those that a browser would spell otherwise."""

from __future__ import annotations

import json
from typing import Any

from monkey.web.sweep_table import serialize_table
from tests.unit.plan.making import grid, table

#: As JavaScript writes them (ECMA-262, Number::toString), those of Python's spelling first.
SAME = [1, -3, 0.1, 0.001953125, 123456.789, 1.5e15 + 0.5, "adam"]
OTHERS = [1.0, "1", True, "true", None, 1e-05, 1e22, 2**60, "", "x" * 40 + "a", "x" * 40 + "b", [1, 2], [1.0, 2]]


def test_values_that_a_browser_spells_otherwise_have_their_text() -> None:
    values: list[Any] = [*SAME, *OTHERS]
    (column,) = json.loads(json.dumps(serialize_table(table(grid(x=values)))))["parameters"]
    assert list(map(int, column["texts"])) == list(range(len(SAME), len(values)))
    plain = [str(value) for value in SAME]
    shown = [column["texts"].get(str(at), text) for at, text in enumerate(plain)] + list(column["texts"].values())
    assert len(set(shown)) == len(values)
    assert {"1.0", '"1"', "1e-05", str(2**60), "[1.0,2]"} <= set(shown)
    assert max(map(len, shown)) <= 32
