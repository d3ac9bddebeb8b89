"""What Grafana does with our dashboards before InfluxDB is asked: variables, formats, time, intervals, aliases.

Grafana itself is nowhere to be had as a package, but for its transformations. What is done here is what its InfluxDB
data source does in InfluxQL (public/app/plugins/datasource/influxdb/datasource.ts, pkg/tsdb/influxdb/models/query.go).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import services

BOARDS = Path(__file__).parents[1] / "dashboards"
NAMES = ("sweep", "job", "fleet")
#: `${name:format}`: without a format, what a variable becomes hangs on what else stands in the query.
_VARIABLE = re.compile(r"\$\{(\w+):(\w+)\}")
_BARE = re.compile(r"\$(\w+)|\$\{(\w+)\}|\[\[\w+")
#: What a data source replaces itself.
_BUILT_IN = {"timeFilter", "__interval", "__interval_ms"}
_SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")

Row = dict[str, Any]
#: Asks a database in InfluxQL; returns rows of tags, `time` in ns, and columns (`tests.influx.Database.rows`).
Ask = Callable[[str], list[Row]]


def left_over(query: str) -> set[str]:
    """Return what looks like a variable without a format, and is none that the data source replaces."""
    return {name for names in _BARE.findall(_VARIABLE.sub("", query)) for name in names if name} - _BUILT_IN


@dataclass(frozen=True)
class Value:
    """What is chosen: several values of a variable, or its `allValue`."""

    values: Sequence[str]
    text: str = ""
    everything: str = ""

    def formatted(self, how: str) -> str:
        """Return it as a query has it."""
        if self.everything:
            return self.everything
        if how == "regex":
            told = [_SPECIAL.sub(r"\\\g<0>", value) for value in self.values]
            return told[0] if len(told) == 1 else f"({'|'.join(told)})"
        if how in ("singlequote", "doublequote"):
            quote = "'" if how == "singlequote" else '"'
            return ",".join(quote + value.replace(quote, "\\" + quote) + quote for value in self.values)
        assert how in ("raw", "text"), f"no format of Grafana: {how}"
        return (self.text if how == "text" else "") or ",".join(self.values)


@dataclass
class Board:
    """A dashboard, opened."""

    name: str
    ask: Ask
    #: Milliseconds since the epoch.
    since: int
    until: int
    chosen: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read it from its file."""
        self.json: dict[str, Any] = json.loads((BOARDS / f"{self.name}.json").read_text())

    @property
    def panels(self) -> Iterator[dict[str, Any]]:
        """All panels with queries."""
        return (panel for panel in self.json["panels"] if panel["type"] != "row")

    def panel(self, title: str) -> dict[str, Any]:
        """Return one panel, by its title as it stands in the file."""
        [found] = [panel for panel in self.panels if panel["title"] == title]
        return found

    def choose(self, **wanted: str) -> None:
        """Fill the variables in their order; one that is not `wanted` gets all, or its first value."""
        for variable in self.json["templating"]["list"]:
            if variable["type"] != "query":
                continue
            name, options = variable["name"], self.options(variable)
            if name in wanted:
                [option] = [one for one in options if wanted[name] in (one.text, *one.values)]
                self.chosen[name] = option
            elif variable["includeAll"]:
                # Without a value of its own, "All" is all options.
                everything = variable.get("allValue", "")
                values = [] if everything else [value for option in options for value in option.values]
                self.chosen[name] = Value(values, everything=everything)
            else:
                self.chosen[name] = options[0] if options else Value([""])

    def options(self, variable: Mapping[str, Any]) -> list[Value]:
        """Return what a variable may be."""
        query = self.replaced(variable["query"]["query"])
        column = 1 if query.startswith(("SHOW TAG VALUES", "SELECT")) else 0
        found = [str(list(row.values())[column]) for row in self.ask(query)]
        if not (pattern := variable.get("regex")):
            return [Value([one]) for one in dict.fromkeys(found)]
        expression = re.compile(pattern.strip("/").replace("(?<", "(?P<").replace("(?P<!", "(?<!"))
        matches = [match for one in found if (match := expression.search(one))]
        return [
            Value([told["value"]], told["text"]) if (told := match.groupdict()) else Value([match[1]])
            for match in matches
        ]

    def replaced(self, query: str) -> str:
        """Return a query with its variables replaced."""
        return _VARIABLE.sub(lambda match: self.chosen[match[1]].formatted(match[2]), query)

    def query(self, target: Mapping[str, Any], interval: str = "1s") -> str:
        """Return what InfluxDB is asked."""
        told = self.replaced(target["query"])
        told = told.replace("$timeFilter", f"time >= {self.since}ms and time <= {self.until}ms")
        return told.replace("$__interval", interval)

    def asked(self, panel: Mapping[str, Any], interval: str = "1s") -> dict[str, list[Row]]:
        """Return the rows that each query of a panel gets, by its letter."""
        return {one["refId"]: self.ask(self.query(one, interval)) for one in panel["targets"]}

    def rows(self, title: str, letter: str = "A", interval: str = "1s") -> list[Row]:
        """Return the rows that one query gets."""
        return self.asked(self.panel(title), interval)[letter]

    def value(self, title: str, letter: str = "A") -> Any:
        """Return what a panel of one number shows; None where there is none."""
        rows = self.rows(title, letter)
        return list(rows[-1].values())[-1] if rows else None


def open_board(name: str, ask: Ask, **wanted: str) -> Board:
    """Open a dashboard on the last hour; `wanted` is chosen of its variables."""
    now = int(time.time() * 1000)
    board = Board(name, ask, now - 3_600_000, now + 60_000)
    board.choose(**wanted)
    return board


def drawn(board: Board, title: str) -> dict[str, dict[Any, float]]:
    """Return the curves of a panel, at the default range of time, six hours, on 1,000 pixels: legend to points."""
    board.since = board.until - 6 * 3_600_000
    [rows] = shown(board, title, "20s")
    over, *legends = rows[0]
    return {legend: {row[over]: row[legend] for row in rows if row[legend] is not None} for legend in legends}


def shown(board: Board, title: str, interval: str = "1s") -> list[list[Row]]:
    """Return what a panel shows, as rows of the columns to be seen, for each of its frames.

    Grafana's own package does the transformations and overrides.
    """
    panel = board.panel(title)
    frames = [_frame(letter, rows) for letter, rows in board.asked(panel, interval).items()]
    done = subprocess.run(
        ["node", str(Path(__file__).parent / "tools/grafana/transform.cjs")],
        input=json.dumps({"panel": panel, "frames": frames}),
        env={**os.environ, "NODE_PATH": str(services.grafana_modules())},
        capture_output=True,
        text=True,
        check=True,
    )
    found = []
    for frame in json.loads(done.stdout):
        names = [one["name"] for one in frame["fields"]]
        found.append(
            [
                dict(zip(names, row, strict=True))
                for row in zip(*(one["values"] for one in frame["fields"]), strict=True)
            ]
        )
    return found


def _frame(letter: str, rows: Sequence[Row]) -> Row:
    """Return rows as the frame that Grafana's back end makes of a table: times in ms, names of its own."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    fields = []
    for name in ["time", *(one for one in names if one != "time")] if names else []:
        values = [row.get(name) for row in rows]
        if name == "time":
            fields.append({"name": "Time", "type": "time", "values": [value // 1_000_000 for value in values]})
            continue
        text = any(isinstance(value, str) for value in values)
        kind = "string" if text else "number"
        fields.append({"name": name, "type": kind, "values": values, "config": {"displayNameFromDS": name}})
    return {"refId": letter, "fields": fields}
