"""What reaches a terminal: nothing that it would obey, nothing wider than it is."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.cli.terminal.text import (
    Terminal,
    detect_terminal,
    draw_bar,
    dump_json,
    flatten_text,
    format_cell,
    format_elapsed,
    format_plural,
    lay_out_table,
    make_printable,
)
from monkey.plan.text.short_texts import cut_text, measure_width

HOSTILE = {
    "\x1b[31mred\x1b[0m": "red",
    "\x1b]0;title\x07after": "after",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1bP1;2qsixel\x1b\\after": "after",
    "a\x1b[2J\x1b[Hb": "ab",
    "\x9b31mred": "red",
    "bell\x07\x08\x7f": "bell",
    "abc\u202etxt.exe": "abctxt.exe",
    "10%\r20%\r\nend": "10%\n20%\nend",
    "cut short \x1b[": "cut short ",
    "cut short \x1b": "cut short ",
    "Grüße\t漢字\n": "Grüße\t漢字\n",
}


@pytest.mark.parametrize(("given", "shown"), HOSTILE.items())
def test_what_a_terminal_would_obey_is_taken_out(given: str, shown: str) -> None:
    assert make_printable(given) == shown


@given(st.text())
def test_nothing_a_terminal_obeys_survives(anything: str) -> None:
    obeyed = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    assert not re.search(obeyed, make_printable(anything))
    assert not re.search(r"[\n\t\r]", flatten_text(anything))


@given(st.text(alphabet="aé漢字\u0301 ", max_size=30), st.integers(1, 30))
def test_cut_text_fits(anything: str, width: int) -> None:
    assert measure_width(cut_text(anything, width)) <= width


@given(
    st.lists(st.tuples(st.text(max_size=20), st.floats(), st.none() | st.integers()), min_size=1, max_size=5),
    st.integers(30, 120),
)
def test_tables_fit_their_terminal(rows: list[tuple[str, float, int | None]], width: int) -> None:
    lines = lay_out_table(["name", "loss", "n"], rows, Terminal(width))
    assert all(measure_width(line) <= width for line in lines)


def test_tables_that_no_cutting_makes_fit_are_stacked() -> None:
    assert lay_out_table(
        ["NAME", "LONG HEAD", "N"], [["one", "some text here", 1], ["two", None, 2]], Terminal(16)
    ) == [
        "NAME       one",
        "LONG HEAD  some…",
        "N          1",
        "",
        "NAME       two",
        "N          2",
    ]


def test_tables_put_numbers_to_the_right_and_cut_nothing_in_a_pipe() -> None:
    lines = lay_out_table(["name", "loss"], [["x" * 100, 0.5], ["y", -12.25], ["z", None]], Terminal())
    assert lines[1] == "x" * 100 + "     0.5"
    assert lines[2].endswith("-12.25")
    assert lines[3] == "z"


def test_colour_is_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert detect_terminal() == Terminal(None, False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert detect_terminal().paint("x", "green") == "\x1b[32mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert detect_terminal().paint("x", "green") == "x"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.1, "0.1"), (1 / 3, "0.333333"), (True, "true"), (None, ""), ([1, "a"], '[1, "a"]'), (1234567, "1234567")],
)
def test_values_as_cells(value: object, shown: str) -> None:
    assert format_cell(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0s"), (9.96, "10s"), (59.6, "1m00s"), (184, "3m04s"), (7500, "2h05m"), (273600, "3d04h"), (-1, "0.0s")],
)
def test_durations(seconds: float, shown: str) -> None:
    assert format_elapsed(seconds) == shown


def test_counts() -> None:
    assert (format_plural(1, "job"), format_plural(2000, "job"), format_plural(2, "pass")) == (
        "1 job",
        "2,000 jobs",
        "2 passes",
    )


@given(st.lists(st.integers(0, 50), min_size=3, max_size=3), st.integers(1, 60))
def test_bars_have_their_width(counts: list[int], width: int) -> None:
    drawn = draw_bar([("━", count, "green") for count in counts], sum(counts) + 1, width, Terminal())
    assert len(drawn) == width


def test_json_says_what_json_cannot_as_strings() -> None:
    hostile = {"\u202ename": "\x9b31m\x7f\u061c\u2066é"}
    assert json.loads(dump_json(hostile)) == hostile
    assert dump_json(hostile) == r'{"\u202ename": "\u009b31m\u007f\u061c\u2066é"}'
    assert json.loads(dump_json({"a": [float("nan"), 1.5], "é": float("inf")})) == {"a": ["nan", 1.5], "é": "inf"}
