"""Importance as people read it."""

from __future__ import annotations

from monkey.cli.render.results_table import format_importance
from monkey.cli.terminal.text import Terminal
from monkey.results.causes.importance import ParameterImportance


def test_an_effect_that_chance_makes_is_no_effect() -> None:
    rows = [ParameterImportance("lr", 0.75, 7.5, 2.0), ParameterImportance("seed", 0.25, 2.5, 2.5)]
    assert [line.split() for line in format_importance(rows, Terminal())] == [
        ["PARAMETER", "IMPORTANCE"],
        ["lr", "75%"],
        ["seed", "25%", *["no", "visible", "effect:", "chance", "makes", "as", "much"]],
    ]
    assert format_importance([], Terminal()) == ["No parameter varies."]
