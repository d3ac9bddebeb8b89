"""Our reader of line protocol beside InfluxDB's own: what both take has the same values, tags and times in both."""

from __future__ import annotations

import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.metrics.records import Records
from monkey_agent.receiving.line_protocol import parse_lines
from monkey_agent.receiving.received_records import RECEIVED_FILE, ReceivedRecords
from tests import influx
from tests.conformance.test_influx_server import write

T = 1790000000000000001
#: Behind a measurement and its comma or space, with numbers as fields alone.
TAKEN = [
    " a=1", " a=1i", " a=-5i", " a=1.5e-7", " a=.5", " a=2.", " a=1e3,b=2", " a=0.1,b=3i,c=-0.25", ",t=x a=1",
    ",t=x,u=y\\ z a=1", ",t=a\\,b,u\\=v=c\\=d a=1", ",t=a\\b a=1", " a\\ b=1", " a\\,b=1,c\\=d=2", " a\\b=1",
    " größe=1", ",t=größe a=1", '  a=1', ' "a"=1', ',t="x" a=1', ",t=x\\\\,u a=1",
]  # fmt: skip
#: What InfluxDB refuses, and so do we.
REFUSED = [
    "", " ", " a", " a=", " =1", ",t a=1", ",=x a=1", " a=1 now", " a=1,", " a=1x", " a=1ii", " a=i", ' a="1', ' a=1"',
    " a=0x1f", " a=1.5i", ",t=a=1i=x a=1", " a\\\\ b=1",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("program", ["influxd", "influxd1"])
def test_we_read_what_influxdb_reads(require: Callable[[str], str], tmp_path: Path, program: str) -> None:
    require(program)
    ours, theirs = {}, {}
    with influx.serve(program, tmp_path) as server:
        database = server.database()
        for number, rest in enumerate([*TAKEN, *REFUSED]):
            line = f"m{number}{rest}" + (f" {T + number}" if rest in TAKEN else "")
            [point] = parse_lines(line)
            try:
                write(database, line)
            except urllib.error.HTTPError as refused:
                refused.close()
                theirs[rest] = None
            else:
                [row] = database.rows(f'SELECT * FROM "m{number}"')
                theirs[rest] = {name: value for name, value in row.items() if value is not None}
            ours[rest] = None if point is None else {"time": point.ns, **dict(point.tags), **point.metrics}
    assert [rest for rest in theirs if theirs[rest] is None] == REFUSED
    assert ours == theirs


@pytest.mark.slow
@pytest.mark.parametrize("program", ["influxd", "influxd1"])
def test_tags_that_a_job_sends_are_tags_in_influxdb(
    require: Callable[[str], str], tmp_path: Path, program: str
) -> None:
    require(program)
    sent = [
        f"loss,layer=conv\\ 1,job=theirs value=0.5,step=1i {T}",
        f"loss,layer=a\\,b\\=c\\\\d value=0.25,step=2i {T + 1}",
        f'loss,quote=" value=0.125,step=3i {T + 2}',
        f"loss value=4i {T + 3}",
    ]
    (tmp_path / "metrics").mkdir()
    records = ReceivedRecords(str(tmp_path / "metrics"))
    for point in parse_lines("\n".join(sent)):
        records.add(point)
    records.flush()
    points = Records({"job": "ours"}).convert((tmp_path / "metrics" / RECEIVED_FILE).read_bytes())
    (tmp_path / "server").mkdir()
    with influx.serve(program, tmp_path / "server") as server:
        database = server.database()
        database.write(points)
        rows = database.rows("SELECT loss FROM metrics GROUP BY layer, quote, job, job_")
    found = {row["loss"]: tuple(row[name] for name in ("job", "job_", "layer", "quote")) for row in rows}
    # No line can say a backslash before another: it becomes a slash.
    assert found == {
        0.5: ("ours", "theirs", "conv 1", ""),
        0.25: ("ours", "", "a,b=c/\\d", ""),
        0.125: ("ours", "", "", '"'),
        4.0: ("ours", "", "", ""),
    }
