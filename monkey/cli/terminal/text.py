"""How words, numbers and tables look. Everything that a user reads passes through here; nothing here prints.

Values, paths and logs come from jobs and from other people. What a terminal would obey is taken out of them, and so
are credentials of known forms.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from math import isfinite
from typing import TYPE_CHECKING, Any, TextIO

from monkey.plan.text.credential_forms import mask_credentials
from monkey.plan.text.short_texts import measure_width, shorten_column
from monkey.plan.text.terminal_codes import OBEYED, escape_json, read_log_line

if TYPE_CHECKING:
    import json

_PLAIN = re.compile(r"[ -~\n\t]*").fullmatch

_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?%?|-?\.[0-9]+|-|–|nan|-?inf", re.IGNORECASE).fullmatch

#: SGR codes of the few colours in use.
_COLOURS = {"green": "32", "yellow": "33", "red": "31", "cyan": "36", "dim": "2", "bold": "1"}
#: Lines that are written at once.
_PIECE = 1_000
#: What a cell is cut to at the least, however narrow the terminal is.
NARROWEST = 8


def make_printable(text: str) -> str:
    """Return the text without anything that a terminal would obey, and without credentials; lines and tabs stay."""
    if not _PLAIN(text):
        text = OBEYED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return mask_credentials(text)


def flatten_text(text: str) -> str:
    """Return the text as one printable line: a newline shows as ⏎, a tab as a space."""
    return make_printable(text).replace("\n", "⏎").replace("\t", " ")


def quote_log_line(line: str) -> str:
    """Return a line of a log as it stands below what it explains: as a terminal leaves it."""
    return f"  │ {flatten_text(read_log_line(line))}"


@dataclass(frozen=True)
class Terminal:
    """Where text goes: `width` in columns (None: no limit, as in a pipe), and whether colours are welcome there."""

    width: int | None = None
    colour: bool = False
    #: Does its encoding lack the blocks that curves are drawn with?
    ascii: bool = False

    def paint(self, text: str, colour: str) -> str:
        """Colour the text where that is welcome."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and text and colour else text


def detect_terminal(stream: TextIO | None = None) -> Terminal:
    """Find out where the stream (default: stdout) goes. NO_COLOR and FORCE_COLOR are heeded, as is COLUMNS."""
    stream = stream or sys.stdout
    tty = stream.isatty()
    colour = tty and os.environ.get("TERM") != "dumb"
    if os.environ.get("FORCE_COLOR"):
        colour = True
    if os.environ.get("NO_COLOR"):
        colour = False
    return Terminal(_columns(stream) if tty else None, colour, not _can_encode("▁█⣿", stream))


def _can_encode(text: str, stream: TextIO) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _columns(stream: TextIO) -> int:
    if os.environ.get("COLUMNS", "").isdigit() and int(os.environ["COLUMNS"]) > 0:
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def lay_out_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    to: Terminal,
    colours: Mapping[int, str] | None = None,
    right: Sequence[bool] | None = None,
) -> list[str]:
    """Lay rows out in columns; where the terminal is narrow, the widest texts are cut, and never a number.

    `colours` colours whole rows, by their index; `right`: which columns stand to the right (None: those of numbers).
    """
    cells = [[format_cell(value) for value in row] for row in rows]
    return lay_out_columns(headers, list(zip(*cells, strict=True)), to, colours, right) if cells else []


def lay_out_columns(
    headers: Sequence[str],
    columns: Sequence[Sequence[str]],
    to: Terminal,
    colours: Mapping[int, str] | None = None,
    right: Sequence[bool] | None = None,
    *,
    whole: bool = False,
) -> list[str]:
    """Lay columns of texts out as `lay_out_table` does rows; a hundred thousand rows take a fraction of a second.

    `whole`: no text is cut; where the terminal is too narrow for them, each row is a line a cell.
    """
    heads, columns = [flatten_text(head) for head in headers], list(map(flatten_column, columns))
    right = right or [_numbers(column) for column in columns]
    widths = [max(measure_width(head), measure_column(cells)) for head, cells in zip(heads, columns, strict=True)]
    if to.width is not None and _sum_widths(widths) > to.width:
        least = widths if whole else [_find_least(*each) for each in zip(widths, columns, right, strict=True)]
        if not _narrow(widths, least, to.width):
            return _stacked(heads, columns, replace(to, width=None) if whole else to, colours or {})
    aligned = map(_align, [[head, *cells] for head, cells in zip(heads, columns, strict=True)], widths, right)
    head, *lines = map(str.rstrip, map("  ".join, zip(*aligned, strict=True)))
    for i, colour in (colours or {}).items() if to.colour else ():
        if i < len(lines):
            lines[i] = to.paint(lines[i], colour)
    return [to.paint(head, "bold"), *lines]


def flatten_column(cells: Sequence[str]) -> Sequence[str]:
    """Return the texts of a column as `flatten_text` does each."""
    together = "".join(cells)
    plain = together.isascii() and together.isprintable() and mask_credentials(together) == together
    return cells if plain else [flatten_text(cell) for cell in cells]


def measure_column(cells: Sequence[str]) -> int:
    """Return the width of the widest text."""
    return max(map(len if "".join(cells).isascii() else measure_width, cells), default=0)


def _sum_widths(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _find_least(width: int, cells: Sequence[str], to_right: bool) -> int:
    """Return to how many characters a column may be cut: no number is, and no text to what another one looks like."""
    if to_right or width <= NARROWEST:
        return width
    return max(NARROWEST, measure_column(shorten_column(cells, NARROWEST)))


def _narrow(widths: list[int], least: Sequence[int], limit: int) -> bool:
    """Take columns from the widest text until the line fits; False where that leaves too little of them."""
    while _sum_widths(widths) > limit:
        widest = max((i for i, width in enumerate(widths) if width > least[i]), default=None, key=widths.__getitem__)
        if widest is None:
            return False
        widths[widest] -= 1
    return True


def _align(cells: Sequence[str], width: int, to_right: bool) -> Iterable[str]:
    if measure_column(cells) > width:
        cells = shorten_column(cells, width, NARROWEST)
    if "".join(cells).isascii():
        return map(str.rjust if to_right else str.ljust, cells, repeat(width))
    spaces = [" " * (width - measure_width(cell)) for cell in cells]
    return [space + cell if to_right else cell + space for cell, space in zip(cells, spaces, strict=True)]


def _stacked(
    headers: Sequence[str], columns: Sequence[Sequence[str]], to: Terminal, colours: Mapping[int, str]
) -> list[str]:
    """Lay rows out one below the other, a line a cell."""
    widest = max(map(measure_width, headers))
    if to.width is not None:
        columns = [shorten_column(cells, to.width - widest - 2) for cells in columns]
    lines: list[str] = []
    for i, row in enumerate(zip(*columns, strict=True)):
        lines += [""] if i else []
        for head, cell in zip(headers, row, strict=True):
            if cell:
                front = head + " " * (widest - measure_width(head))
                lines.append(to.paint(f"{front}  {cell}", colours.get(i, "")))
    return lines


def _numbers(column: Sequence[str]) -> bool:
    return any(column) and all(_NUMBER(cell) for cell in column if cell)


def format_cell(value: Any) -> str:
    """Return a value as a cell shows it: strings as they are, floats with at most six digits that count."""
    if isinstance(value, str):
        return flatten_text(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return str(value)
    return flatten_text(dump_json(value))


def join_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, with newlines, in pieces of many."""
    for at in range(0, len(lines), _PIECE):
        yield "\n".join(lines[at : at + _PIECE]) + "\n"


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """Return the value as JSON: UTF-8, in the order given; what JSON cannot say (nan, inf) becomes a string."""
    try:
        text = _make_encoder(indent).encode(value)
    except ValueError:
        text = _make_encoder(indent).encode(_finite(value))
    # The same to every reader of JSON, and no command to CI's runner or a terminal.
    return escape_json(text.replace("##[", r"#\u0023["))


@lru_cache
def _make_encoder(indent: int | None) -> json.JSONEncoder:
    import json

    return json.JSONEncoder(ensure_ascii=False, indent=indent, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def format_plural(count: int, noun: str) -> str:
    """Return "1 job", "2 jobs", "1,000 jobs"."""
    ending = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch")) else "s"
    return f"{count:,} {noun}{ending}"


def format_elapsed(seconds: float | None) -> str:
    """Return seconds as people say them: "0.3s", "12s", "3m04s", "2h05m", "3d04h"."""
    if seconds is None:
        return ""
    seconds = max(seconds, 0.0)
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def draw_bar(parts: Iterable[tuple[str, int, str]], total: int, width: int, to: Terminal) -> str:
    """Draw a bar of `width` columns whose parts are (mark, count, colour); what is left of the total stays dotted."""
    drawn, used = [], 0
    for mark, count, colour in parts:
        cells = round(count * width / total) if total else 0
        cells = min(max(cells, 1 if count else 0), width - used)
        used += cells
        drawn.append(to.paint(mark * cells, colour))
    return "".join(drawn) + to.paint("╌" * (width - used), "dim")
