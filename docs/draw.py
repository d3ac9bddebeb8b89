"""Draws a dashboard as an SVG: what its queries gave, laid out as Grafana does. Not Grafana, but the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Any

#: Pixels: a dashboard's width, one of its 24 columns, one row, and what lies between panels.
WIDTH, ROW, GAP, HEAD = 1200, 30, 6, 26
COLUMN = WIDTH / 24
BACK, PANEL, TEXT, FAINT, GRID = "#111217", "#181b1f", "#ccccdc", "#8e8e99", "#2c3235"
COLOURS = {
    "green": "#73bf69", "red": "#f2495c", "blue": "#5794f2", "orange": "#ff9830", "text": TEXT,
    "semi-dark-blue": "#3274d9",
}  # fmt: skip
PALETTE = (
    "#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a",
    "#447ebc", "#c15c17", "#890f02", "#0a437c", "#6d1f62", "#584477", "#b7dbab", "#f4d598", "#70dbed", "#f9ba8f",
)  # fmt: skip

Point = tuple[float, float]
#: Where nothing was measured, there is no second number, and a gap in the line.
Spot = tuple[float, float | None]


@dataclass
class Series:
    """A line, some bars or some points."""

    name: str
    points: list[Spot]
    colour: str = ""
    style: str = "line"
    width: float = 1.2


@dataclass
class Area:
    """A panel on the picture; draws into it."""

    x: float
    y: float
    w: float
    h: float
    parts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add a piece of SVG."""
        self.parts.append(text)

    def text(self, x: float, y: float, text: str, size: float = 12, colour: str = TEXT, more: str = "") -> None:
        """Write; x and y are of the whole picture."""
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" {more}>{escape(text)}</text>')

    def box(self, x: float, y: float, w: float, h: float, colour: str, more: str = "") -> None:
        """Draw a filled rectangle."""
        self.add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{max(h, 0):.1f}" fill="{colour}" {more}/>'
        )


def area(grid: dict[str, int], title: str) -> Area:
    """Return a panel's area, with its frame and title."""
    made = Area(grid["x"] * COLUMN + GAP, grid["y"] * (ROW + GAP) + GAP, grid["w"] * COLUMN - GAP, 0)
    made.h = grid["h"] * (ROW + GAP) - GAP
    made.box(made.x, made.y, made.w, made.h, PANEL, f'rx="3" stroke="{GRID}"')
    made.text(made.x + 10, made.y + 18, title, 13, TEXT, 'font-weight="600"')
    return made


def picture(areas: Sequence[Area]) -> str:
    """Return the whole."""
    height = max(one.y + one.h for one in areas) + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + GAP} {height:.0f}" '
    head += 'font-family="Inter, Helvetica, Arial, sans-serif">'
    body = "\n".join(part for one in areas for part in one.parts)
    return f'{head}\n<rect width="100%" height="100%" fill="{BACK}"/>\n{body}\n</svg>\n'


def told(value: float | str | None, unit: str = "") -> str:
    """Return a value as a person reads it."""
    if value is None or isinstance(value, str):
        return value or ""
    if unit == "dateTimeFromNow":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%H:%M:%S")
    if unit in ("bytes", "Bps"):
        step = min(int(math.log(abs(value), 1000 if unit == "Bps" else 1024)) if abs(value) >= 1 else 0, 4)
        names = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s") if unit == "Bps" else ("B", "KiB", "MiB", "GiB", "TiB")
        return f"{value / (1000 if unit == 'Bps' else 1024) ** step:.3g} {names[step]}"
    number = f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:.4g}"
    return number + {"s": " s", "percent": "%", "watt": " W", "celsius": " °C"}.get(unit, "")


def tiles(into: Area, values: Sequence[tuple[str, str, str]], background: bool) -> None:
    """Draw large values: of each its name, itself, its colour."""
    wide = (into.w - 16) / max(len(values), 1)
    for at, (name, value, colour) in enumerate(values):
        x, y, h = into.x + 8 + at * wide, into.y + HEAD, into.h - HEAD - 8
        filled = background and colour != TEXT
        if filled:
            into.box(x + 2, y, wide - 4, h, colour, 'rx="2" fill-opacity="0.85"')
        shade = "#ffffff" if filled else colour
        size = min(34.0, wide / max(len(value), 3) * 1.5, h * 0.5)
        if len(values) > 1:
            into.text(x + wide / 2, y + 16, name, 12, shade, 'text-anchor="middle"')
        middle = y + h / 2 + size / 3 + (6 if len(values) > 1 else -2)
        into.text(x + wide / 2, middle, value, round(size), shade, 'text-anchor="middle" font-weight="600"')


def chart(
    into: Area, series: Sequence[Series], unit: str, low: float | None, time: bool, legend: str = "below"
) -> None:
    """Draw series over time (x in ms) or over numbers; `legend`: "below", "beside" (the greatest last) or ""."""
    points = [(x, y) for one in series for x, y in one.points if y is not None]
    if not points:
        into.text(into.x + into.w / 2, into.y + into.h / 2, "no data", 13, FAINT, 'text-anchor="middle"')
        return
    beside = 190 if legend == "beside" else 0
    box = into.x + 62, into.y + HEAD + 4, into.w - 76 - beside, into.h - HEAD - (44 if legend == "below" else 26)
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    least, most = (min(y for _, y in points) if low is None else low), max(y for _, y in points)
    pad = (most - least) * 0.06 or abs(most) * 0.1 or 1
    xs, ys = (left, left + (right - left or 1)), (least - pad if low is None else low, most + pad)
    if any(one.style == "bars" for one in series):
        half = (right - left) / max(len(one.points) for one in series) / 2
        xs = (left - half, right + half)
    _axes(into, box, xs, ys, unit, time)
    for number, one in enumerate(series):
        one.colour = one.colour or PALETTE[number % len(PALETTE)]
        _draw(into, one, box, xs, ys)
    if legend:
        (_ranking if beside else _legend)(into, series)


def _draw(into: Area, one: Series, box: tuple[float, float, float, float], xs: Point, ys: Point) -> None:
    x0, y0, w, h = box
    wide = max(2.0, w / max(len(one.points), 1) * 0.7)
    way, pen = [], "M"
    for x, y in one.points:
        if y is None:
            pen = "M"
            continue
        at, up = x0 + (x - xs[0]) / (xs[1] - xs[0]) * w, y0 + h - (y - ys[0]) / (ys[1] - ys[0]) * h
        if one.style == "points":
            into.add(f'<circle cx="{at:.1f}" cy="{up:.1f}" r="3.5" fill="{one.colour}" fill-opacity=".75"/>')
        elif one.style == "bars":
            into.box(at - wide / 2, up, wide, y0 + h - up, one.colour, 'fill-opacity="0.85"')
        else:
            way.append(f"H{at:.1f}V{up:.1f}" if one.style == "steps" and pen == "L" else f"{pen}{at:.1f} {up:.1f}")
        pen = "L"
    if way:
        line = f'fill="none" stroke="{one.colour}" stroke-width="{one.width}" stroke-linejoin="round"'
        into.add(f'<path d="{"".join(way)}" {line}/>')


def _ranking(into: Area, series: Sequence[Series]) -> None:
    last = [(y, one) for one in series if (y := next((y for _, y in reversed(one.points) if y is not None), None))]
    x, y = into.x + into.w - 182, into.y + HEAD + 12
    into.text(x + 172, y, "Last *", 11, "#6e9fff", 'text-anchor="end" font-weight="600"')
    for value, one in sorted(last, key=lambda pair: -pair[0]):
        y += 16
        if y > into.y + into.h - 8:
            return
        into.box(x, y - 5, 12, 3, one.colour)
        into.text(x + 17, y, one.name, 10.5)
        into.text(x + 172, y, told(value), 10.5, TEXT, 'text-anchor="end"')


def _axes(into: Area, box: tuple[float, float, float, float], xs: Point, ys: Point, unit: str, time: bool) -> None:
    x0, y0, w, h = box
    scale = 1024 ** int(math.log(max(ys[1], 1), 1024)) if unit == "bytes" else 1
    for value in (scale * tick for tick in _ticks(ys[0] / scale, ys[1] / scale, 4)):
        y = y0 + h - (value - ys[0]) / (ys[1] - ys[0]) * h
        into.box(x0, y, w, 1, GRID)
        into.text(x0 - 6, y + 4, told(value, unit), 11, FAINT, 'text-anchor="end"')
    for value in _times(*xs, w / 70) if time else _ticks(*xs, max(3, w / 80)):
        x = x0 + (value - xs[0]) / (xs[1] - xs[0]) * w
        into.box(x, y0, 1, h, GRID)
        shown = datetime.fromtimestamp(value / 1000, UTC).strftime("%H:%M:%S" if xs[1] - xs[0] < 6e5 else "%H:%M")
        into.text(x, y0 + h + 16, shown if time else told(value), 11, FAINT, 'text-anchor="middle"')


def _ticks(low: float, high: float, count: float) -> list[float]:
    rough = (high - low) / count
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * one for one in (1, 2, 2.5, 5, 10) if size * one >= rough)
    return [round(n * step, 12) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _times(low: float, high: float, count: float) -> list[float]:
    steps = [1000 * one for one in (1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)]
    step = next((one for one in steps if (high - low) / one <= min(count, 8)), steps[-1])
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _legend(into: Area, series: Sequence[Series]) -> None:
    x, y = into.x + 14, into.y + into.h - 10
    for number, one in enumerate(series):
        wide = 22 + 6.4 * len(one.name)
        if x + wide > into.x + into.w - 56:
            into.text(x, y, f"… {len(series) - number} more", 11, FAINT)
            return
        into.box(x, y - 5, 12, 3, one.colour or PALETTE[number % len(PALETTE)])
        into.text(x + 16, y, one.name, 11, TEXT)
        x += wide + 8


def table(into: Area, columns: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]]) -> None:
    """Draw rows of (text, colour); a colour but the text's fills the cell."""
    weights = [max([len(name), *(len(row[n][0]) for row in rows[:40])]) + 2 for n, name in enumerate(columns)]
    starts = [into.x + 10 + (into.w - 20) * sum(weights[:n]) / sum(weights) for n in range(len(columns) + 1)]
    y = into.y + HEAD + 16
    for x, name in zip(starts, columns, strict=False):
        into.text(x, y, name, 11.5, "#6e9fff", 'font-weight="600"')
    for row in rows:
        y += 22
        if y > into.y + into.h - 8:
            into.text(into.x + into.w - 16, into.y + 18, f"{len(rows)} rows", 11, FAINT, 'text-anchor="end"')
            return
        into.box(into.x + 8, y - 15.5, into.w - 16, 0.8, GRID)
        for n, (value, colour) in enumerate(row):
            if colour != TEXT:
                into.box(starts[n] - 4, y - 14, starts[n + 1] - starts[n] - 4, 20, colour, 'fill-opacity="0.85"')
            into.text(starts[n], y, value, 11.5, TEXT if colour == TEXT else "#ffffff")


def timeline(into: Area, lanes: Sequence[tuple[str, Sequence[tuple[float, float, str, str]]]], span: Point) -> None:
    """Draw a lane for each name: from, to (ms), colour, label."""
    x0, w = into.x + 110, into.w - 124
    y0, h = into.y + HEAD + 4, (into.h - HEAD - 30) / max(len(lanes), 1)
    for number, (name, states) in enumerate(lanes):
        y = y0 + number * h
        into.text(x0 - 8, y + h / 2 + 4, name, 11.5, TEXT, 'text-anchor="end"')
        for since, until, colour, label in states:
            left = x0 + (since - span[0]) / (span[1] - span[0]) * w
            right = x0 + (until - span[0]) / (span[1] - span[0]) * w
            into.box(left, y + 2, right - left + 0.4, h - 4, colour, 'fill-opacity="0.8"')
            if len(label) * 7 < right - left:
                into.text(left + 6, y + h / 2 + 4, label, 11, "#ffffff")
    for value in _times(*span, w / 70):
        x = x0 + (value - span[0]) / (span[1] - span[0]) * w
        shown = datetime.fromtimestamp(value / 1000, UTC).strftime("%H:%M:%S" if span[1] - span[0] < 6e5 else "%H:%M")
        into.text(x, into.y + into.h - 8, shown, 11, FAINT, 'text-anchor="middle"')


def gauges(into: Area, values: Sequence[tuple[str, float]], unit: str) -> None:
    """Draw horizontal bars of 0 to 100."""
    h = (into.h - HEAD - 8) / max(len(values), 1)
    for number, (name, value) in enumerate(values):
        y, x0, w = into.y + HEAD + number * h, into.x + 80, into.w - 140
        colour = COLOURS["red" if value >= 95 else "orange" if value >= 80 else "green"]
        into.text(x0 - 8, y + h / 2 + 4, name, 11.5, TEXT, 'text-anchor="end"')
        into.box(x0, y + 2, w, h - 4, GRID)
        into.box(x0, y + 2, w * value / 100, h - 4, colour)
        into.text(x0 + w + 8, y + h / 2 + 4, told(value, unit), 11.5, colour)


def paint(colour: Any) -> str:
    """Return a colour of Grafana's as one of SVG's."""
    return COLOURS.get(str(colour), str(colour) or TEXT)
