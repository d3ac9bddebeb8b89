"""Draws docs/dashboards-*.svg: `invoke dashboards --pictures`.

The sweep `digits` is run for real, its points and those of a made-up fleet go to an InfluxDB (`invoke services` has
one), and each panel of each dashboard is drawn from what its own queries give there. Grafana's transformations and
overrides are Grafana's own (its package for node, `invoke services`); only the drawing is ours.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

import draw  # noqa: E402  # beside this script

from monkey.metrics import names  # noqa: E402
from monkey.metrics.influx.influx_points import write_point  # noqa: E402
from tests import digits, influx  # noqa: E402
from tests.grafana import NAMES, Board, shown  # noqa: E402

#: Nanoseconds in a second; seconds that the fleet is made up for.
S, SPAN = 1_000_000_000, 3 * 3600


def main() -> None:
    """Run the sweep, fill a database, draw."""
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        (base / "influxd").mkdir()
        with influx.serve("influxd1", base / "influxd") as server:
            database = server.database()
            sweep = digits.run(base / "digits", database)
            try:
                database.write(b"".join(fleet(sweep.rows[0]["job"], sweep)))
                for name in NAMES:
                    (DOCS / f"dashboards-{name}.svg").write_text(drawn(opened(name, database, sweep)))
            finally:
                sweep.shop.kill_all()


def opened(name: str, database: influx.Database, sweep: digits.Digits) -> Board:
    """Open a dashboard on the time that has something to see."""
    now = int(time.time() * 1000)
    since, until = now - SPAN * 1000, now
    if name != "fleet":
        since, until = int(min(sweep.ends) * 1000) - 6_000, int(max(sweep.ends) * 1000) + 2_000
    if name == "job":
        end = int(sweep.ends[0] * 1000)
        since, until = end - round(sweep.rows[0]["seconds"] * 1000) - 1_000, end + 1_000
    board = Board(name, database.rows, since, until)
    chosen = {"sweep": "digits", "metric": digits.METRIC, "job": sweep.rows[0]["job"], "parameter": "lr"}
    chosen |= {"fleet": "lab"}  # not the machine that ran the sweep
    wanted = {"sweep": ("sweep", "metric", "parameter"), "job": ("sweep", "job", "metric"), "fleet": ("fleet",)}[name]
    board.choose(**{one: chosen[one] for one in wanted})
    return board


def fleet(job: str, sweep: digits.Digits) -> Iterator[bytes]:
    """Make up five machines: one comes late, one was lost for a while, two have GPUs; and samples of one job."""
    chance, now = random.Random(4), int(time.time())
    for number, host in enumerate(("gpu1", "gpu2", "cpu1", "cpu2", "spot1")):
        tags = {names.HOST: host, names.FLEET_TAG: "lab", names.AGENT: f"{host}-a"}
        load, counted = 60.0, 0.0
        for when in range(now - SPAN - 600, now, 15):
            past = (when - now + SPAN) / SPAN
            load = min(99.0, max(4.0, load + chance.gauss(0, 2) + (55 + 6 * number - load) * 0.03))
            counted += 1e6 * load
            if (host == "spot1" and past < 0.35) or (host == "cpu2" and 0.55 < past < 0.68):
                continue
            busy = float(min(4, round(load / 22)))
            told = {
                names.CPU_PERCENT: load, names.MEMORY_PERCENT: 30 + 8 * number + 6 * math.sin(past * 9 + number),
                names.MEMORY_BYTES: (20 + 9 * number) * 2.0**30, names.BUSY: busy, names.SLOTS: 4.0,
                names.DISK_USED_PERCENT: 35 + 9 * number + 6 * past, names.DISK_READ_BYTES: counted * 9,
                names.DISK_WRITE_BYTES: counted * 4, names.NET_RECEIVED_BYTES: counted * 5,
                names.NET_SENT_BYTES: counted,
            }  # fmt: skip
            yield write_point(names.SYSTEM, tags, told, when * S)
            for index in range(2) if host.startswith("gpu") else ():
                use = min(100.0, max(0.0, load + 4 + 12 * index + chance.gauss(0, 2)))
                gpu = {names.GPU_PERCENT: use, names.GPU_MEMORY_BYTES: (40 + use / 4) * 2.0**30}
                gpu |= {names.GPU_POWER_WATTS: 90 + 5.6 * use, names.GPU_TEMPERATURE: 38 + use * 0.4}
                yield write_point(names.SYSTEM, {**tags, names.GPU: str(index)}, gpu, when * S)
    tags = {names.HOST: "gpu1", names.FLEET_TAG: "lab", names.AGENT: "gpu1-a", names.JOB: job}
    began, took = sweep.ends[0] - sweep.rows[0]["seconds"], sweep.rows[0]["seconds"]
    for second in range(41):
        ramp = min(1.0, second / 8)
        told = {
            names.CPU_PERCENT: abs(96 * ramp + chance.gauss(0, 2)),
            names.MEMORY_BYTES: (0.3 + 0.5 * ramp) * 2.0**30,
        }
        told |= {names.DISK_READ_BYTES: 2e5 * second, names.DISK_WRITE_BYTES: 5e4 * second}
        told |= {names.GPU_PERCENT: abs(70 * ramp + chance.gauss(0, 3)), names.GPU_MEMORY_BYTES: 6.0 * 2**30 * ramp}
        yield write_point(names.SYSTEM, tags, told, int((began + second / 40 * took) * S))


# -- drawing ----------------------------------------------------------------------------------------------------------


def drawn(board: Board) -> str:
    """Return a dashboard as an SVG."""
    areas = []
    for panel in board.json["panels"]:
        if panel["type"] == "row":
            heading = draw.Area(0, panel["gridPos"]["y"] * (draw.ROW + draw.GAP), draw.WIDTH, draw.ROW)
            heading.text(12, heading.y + 26, f"▾ {panel['title']}", 15, draw.TEXT, 'font-weight="600"')
            areas.append(heading)
            continue
        into = draw.area(panel["gridPos"], _said(board, panel["title"]))
        _KINDS[panel["type"]](into, board, panel)
        areas.append(into)
    return draw.picture(areas)


def _said(board: Board, text: str) -> str:
    for name, value in board.chosen.items():
        said = value.text or ",".join(value.values)
        text = text.replace(f"${{{name}:text}}", said).replace(f"${name}", said)
    return text


def _interval(board: Board, panel: Mapping[str, Any]) -> str:
    units = {"ms": 1, "s": 1000, "m": 60_000}
    least = panel.get("interval", "1ms")
    number, unit = least.rstrip("ms"), least.lstrip("0123456789")
    wide = (board.until - board.since) / panel.get("maxDataPoints", 250)
    return f"{max(math.ceil(wide), int(number) * units[unit])}ms"


def _stat(into: draw.Area, board: Board, panel: dict[str, Any]) -> None:
    unit, background = _default(panel, "unit"), panel["options"]["colorMode"] == "background"
    tiles = []
    for target in panel["targets"]:
        value = board.value(panel["title"], target["refId"])
        if value is not None:
            tiles.append(
                (target.get("alias", ""), draw.told(value, unit), _colour(panel, target.get("alias", ""), value))
            )
    draw.tiles(into, tiles or [("", "–", draw.TEXT)], background)


def _lines(into: draw.Area, board: Board, panel: dict[str, Any]) -> None:
    style = {"line": "line", "bars": "bars", "points": "points"}[_custom(panel).get("drawStyle", "line")]
    found: dict[str, draw.Series] = {}
    for target in panel["targets"]:
        for row in board.rows(panel["title"], target["refId"], _interval(board, panel)):
            *_, value = row.values()
            name = target["alias"]
            for tag in ("host", "gpu", "job"):
                name = name.replace(f"$tag_{tag}", str(row.get(tag, "")))
            series = found.setdefault(name, draw.Series(name, [], _override(panel, name), style))
            series.points.append((row["time"] / 1e6, value))
    for one in found.values():
        if one.name == "best of the while":
            one.style, one.width = "steps", 2
    low = panel["fieldConfig"]["defaults"].get("min")
    draw.chart(into, list(found.values()), _default(panel, "unit"), low, True, _legend(panel))


def _trend(into: draw.Area, board: Board, panel: dict[str, Any]) -> None:
    for rows in shown(board, panel["title"], _interval(board, panel)):
        found = [
            draw.Series(name, [(row["step"], row[name]) for row in rows if row[name] is not None])
            for name in (rows[0] if rows else ())
            if name != "step"
        ]
        draw.chart(into, found, "", None, False, _legend(panel))


def _scatter(into: draw.Area, board: Board, panel: dict[str, Any]) -> None:
    for rows in shown(board, panel["title"]):
        spots = [(row["parameter"], row["objective"]) for row in rows]
        draw.chart(
            into, [draw.Series("", spots, draw.paint("semi-dark-blue"), "points")], "", None, False, legend=False
        )


def _table(into: draw.Area, board: Board, panel: dict[str, Any]) -> None:
    units = {"since": "dateTimeFromNow", "at": "dateTimeFromNow", "heard of": "dateTimeFromNow", "seconds": "s"}
    units |= {"CPU": "percent", "memory": "percent", "disk": "percent", "memory used": "bytes"}
    for rows in shown(board, panel["title"]):
        columns = list(rows[0]) if rows else []
        cells = [
            [
                (
                    draw.told(row[one], units.get(one, "")),
                    _colour(panel, one, row[one]) if one == "state" else draw.TEXT,
                )
                for one in columns
            ]
            for row in rows
        ]
        draw.table(into, columns, cells)


def _timeline(into: draw.Area, board: Board, panel: dict[str, Any]) -> None:
    lanes: dict[str, list[tuple[float, float, str, str]]] = {}
    for target in panel["targets"]:
        for row in board.rows(panel["title"], target["refId"], _interval(board, panel)):
            *_, value = row.values()
            lane = lanes.setdefault(target["alias"].replace("$tag_host", str(row.get("host"))), [])
            at = row["time"] / 1e6
            colour, label = _colour(panel, "", value), str(value)
            if isinstance(value, int | float):
                colour, label = draw.paint("green" if value else "red"), "heard of" if value else "silent"
            elif colour == draw.TEXT:
                colour = draw.PALETTE[6]
            if lane and lane[-1][3] == label:
                lane[-1] = (lane[-1][0], at, colour, label)
                continue
            if lane:
                lane[-1] = (lane[-1][0], at, *lane[-1][2:])
            lane.append((at, board.until, colour, label))
    for lane in lanes.values():
        lane[-1] = (lane[-1][0], board.until, *lane[-1][2:])
    draw.timeline(into, list(lanes.items()), (board.since, board.until))


def _gauges(into: draw.Area, board: Board, panel: dict[str, Any]) -> None:
    draw.gauges(into, [(row["host"], row["cpu"]) for row in board.rows(panel["title"])], _default(panel, "unit"))


_KINDS = {
    "stat": _stat, "timeseries": _lines, "trend": _trend, "xychart": _scatter, "table": _table,
    "state-timeline": _timeline, "bargauge": _gauges,
}  # fmt: skip


def _legend(panel: Mapping[str, Any]) -> str:
    return "beside" if panel["options"]["legend"]["placement"] == "right" else "below"


def _default(panel: Mapping[str, Any], name: str) -> str:
    return str(panel["fieldConfig"]["defaults"].get(name, ""))


def _custom(panel: Mapping[str, Any]) -> dict[str, Any]:
    return dict(panel["fieldConfig"]["defaults"].get("custom", {}))


def _override(panel: Mapping[str, Any], name: str) -> str:
    """Return the colour that an override gives to a series."""
    for one in panel["fieldConfig"]["overrides"]:
        if one["matcher"].get("options") == name:
            for told in one["properties"]:
                if told["id"] == "color":
                    return draw.paint(told["value"]["fixedColor"])
    return ""


def _colour(panel: Mapping[str, Any], name: str, value: Any) -> str:
    """Return a value's colour: of its series, of a mapping of its text, of thresholds, or of the panel."""
    defaults = panel["fieldConfig"]["defaults"]
    properties = [told for one in panel["fieldConfig"]["overrides"] for told in one["properties"]]
    mappings = defaults.get("mappings", []) + [m for t in properties if t["id"] == "mappings" for m in t["value"]]
    for mapping in mappings:
        if mapping["type"] == "value" and str(value) in mapping["options"]:
            return draw.paint(mapping["options"][str(value)]["color"])
    if own := _override(panel, name):
        return own
    if fixed := defaults.get("color", {}).get("fixedColor"):
        return draw.paint(fixed)
    steps = defaults.get("thresholds", {}).get("steps", [{"value": None, "color": "text"}])
    fits = [one for one in steps if one["value"] is None or (isinstance(value, int | float) and value >= one["value"])]
    return draw.paint(fits[-1]["color"])


if __name__ == "__main__":
    main()
