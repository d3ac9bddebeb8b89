"""Whatever jobs and the store hold becomes JSON that a browser reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monkey.web.safe_json import encode_json, make_json_number

NUMBERS = [
    *((1, 1), (0.5, 0.5), (float("nan"), "nan"), (float("-inf"), "-inf"), (10**5000, "inf"), (-(10**30), "-inf")),
    *(("x", None), (None, None), (True, None), ([], None)),
]
ODD: list[Any] = [float("nan"), {"x": [float("inf")]}, 10**5000, "\ud800", {"a": {1, 2}}, (1, object())]


@pytest.mark.parametrize(("value", "shown"), NUMBERS, ids=range(len(NUMBERS)))
def test_numbers(value: Any, shown: Any) -> None:
    assert make_json_number(value) == shown


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_anything_is_json(value: Any) -> None:
    json.loads(encode_json({"value": value}).decode("utf-8"), parse_constant=refuse)
