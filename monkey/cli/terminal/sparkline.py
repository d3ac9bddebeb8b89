"""Sparklines: a curve as one line of text."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.cli.terminal.text import Terminal
from monkey.metrics.summary import is_finite

#: What is drawn, from the least value to the greatest; what a terminal without UTF-8 gets.
_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*#"
#: A stretch whose last value is not finite.
_GAP = "!"


def select_shown_values(values: Sequence[float], width: int) -> list[float]:
    """Return the values that a sparkline of so many columns shows."""
    columns = min(width, len(values))
    return [values[(at + 1) * len(values) // columns - 1] for at in range(columns)]


def draw_sparkline(values: Sequence[float], width: int, to: Terminal) -> str:
    """Draw a curve in at most `width` columns, each of them the last value of its stretch; "" for no value."""
    shown = select_shown_values(values, width)
    finite = [value for value in shown if is_finite(value)]
    low, high = min(finite, default=0), max(finite, default=0)
    levels = _PLAIN if to.ascii else _BLOCKS

    def draw(value: float) -> str:
        if not is_finite(value):
            return _GAP
        # A curve that does not move is in the middle. Halves, as the difference of two floats may be no float.
        share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        return levels[min(int(share * len(levels)), len(levels) - 1)]

    return "".join(map(draw, shown))
