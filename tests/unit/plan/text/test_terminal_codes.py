"""A line of a log, as a terminal leaves it."""

from __future__ import annotations

import pytest

from monkey.plan.text.terminal_codes import read_log_line

LINES = {
    "\x1b[31mred\x1b[0m error": "red error",
    "\x1b]8;;http://evil\x07link\x1b]8;;\x07 to it": "link to it",
    "cut short \x1b[3": "cut short ",
    "\r10%|#   |\r50%|##  |\r100%|####|": "100%|####|",
    "10%\r20%\r": "20%",
    "30%\r4": "40%",
    "a long line\r\x1b[2Kshort": "short",
    "a long line\r\x1b[Kshort": "short",
    "\x1b[1m1/2\x1b[0m\r\x1b[1m2/2\x1b[0m": "2/2",
    "model\u202egnp.pt\u061c": "modelgnp.pt",
    "Grüße\t漢字": "Grüße\t漢字",
    "": "",
}


@pytest.mark.parametrize(("given", "shown"), LINES.items())
def test_a_line_is_shown_as_a_terminal_leaves_it(given: str, shown: str) -> None:
    assert read_log_line(given) == shown
