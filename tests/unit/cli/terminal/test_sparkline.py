"""Sparklines: as wide as there is room, and in letters that the terminal has."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from monkey.cli.render.curves.curve_tables import add_sparklines
from monkey.cli.terminal.sparkline import draw_sparkline
from monkey.cli.terminal.text import Terminal, detect_terminal
from monkey.plan.text.short_texts import measure_width

UTF8, PLAIN = Terminal(80), Terminal(80, ascii=True)


def test_low_values_are_low_and_a_last_value_is_the_last_column() -> None:
    assert draw_sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8, UTF8) == "▁▂▃▄▅▆▇█"
    assert draw_sparkline([7, 0, 7, 0], 2, UTF8) == "▅▅"
    assert draw_sparkline([0, 9, 0, 1], 2, UTF8) == "█▁"
    assert draw_sparkline([0, float("nan"), 1], 9, UTF8) == "▁!█"
    assert draw_sparkline([], 9, UTF8) == ""


@given(st.lists(st.floats(), max_size=50), st.integers(1, 20))
def test_any_values_are_drawn_in_the_room_there_is(values: list[float], width: int) -> None:
    assert len(draw_sparkline(values, width, UTF8)) == min(width, len(values))
    assert draw_sparkline(values, width, PLAIN).isascii()


def test_a_terminal_without_utf8_is_found_out() -> None:
    assert detect_terminal(io.TextIOWrapper(io.BytesIO(), "latin-1")).ascii
    assert not detect_terminal(io.TextIOWrapper(io.BytesIO(), "utf-8")).ascii


def test_the_column_fits_the_terminal_and_is_left_out_of_a_narrow_one() -> None:
    rows, curve = [["loss", 0.25], ["val_acc", 123456.5]], [[float(n) for n in range(99)]] * 2
    for width in range(10, 80):
        lines = add_sparklines(["METRIC", "LAST"], rows, curve, Terminal(width))
        if width >= 15:
            assert max(map(measure_width, lines)) <= width
        assert ("CURVE" in lines[0]) is (width >= 25), width
    assert add_sparklines(["METRIC", "LAST"], [], [], UTF8) == []
