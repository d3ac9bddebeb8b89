"""The layout of points, of 100,000 jobs in InfluxDB 1.8: its memory, and what a board asks of a sweep of 1,000 jobs.

Bars: at most 1.5 GB resident, at any time; the last value of a metric of each job of a sweep in at most 100 ms. That is
asked as soon as all is written, and again once the server has put it away. The points are made by the product's own
code, with its tags. The server has the settings that it comes with, but for its index: on disk, as docs/metrics.md asks
for (`inmem` as an argument: in memory, as 1.8 has it by itself).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from _common import report

sys.path.insert(0, str(Path(__file__).parent.parent))

from monkey.metrics.influx.influx_points import make_metric_tags
from monkey.metrics.influx.state_points import JobAttempt, SweepJob, write_beginning_point, write_end_point
from monkey.metrics.records import Records
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import SweepSettings
from tests import influx

SWEEPS, JOBS, STEPS = 100, 1000, 10
#: Seconds of the first point; each job runs for a minute.
BEGIN = 1_770_000_000
#: Bytes of a batch; times each question is asked.
BATCH, ASKED = 1 << 20, 15
#: Seconds after which it is asked in any case.
SETTLE = 120
MEMORY_BAR, ANSWER_BAR = 1500, 100.0

QUESTIONS = {
    "last by job": "SELECT last(loss) FROM metrics WHERE sweep = 's42' GROUP BY job",
    "one curve": "SELECT loss FROM metrics WHERE sweep = 's42' AND job = '{job}'",
    "state by job": "SELECT last(state) FROM jobs WHERE sweep = 's42' GROUP BY job",
}


def points(sweep: int) -> Iterator[bytes]:
    """Yield what agents send of each job of a sweep."""
    summary = {"loss": {"last": 0.25, "min": 0.25, "max": 1.0}, "accuracy": {"last": 0.9, "min": 0.1, "max": 0.9}}
    jobs = range(JOBS)
    columns = {
        "lr": ParameterColumn([0.1 / (at + 1) for at in jobs], jobs),
        "depth": ParameterColumn(range(7), [at % 7 for at in jobs]),
        "optimizer": ParameterColumn(["adam"], [0] * JOBS),
    }
    table = JobTable([name(sweep, at) for at in jobs], columns)
    for at, job in enumerate(table.ids):
        host, begun = f"gpu{at % 16}", float(BEGIN + 60 * sweep + at % 60)
        records = b"".join(
            b'{"m":{"loss":%.17g,"accuracy":%.17g},"step":%d,"t":%de-9}\n'
            % (1 / (step + 1.1), 1 - 1 / (step + 1.3), step, int(begun * 1e9) + step * 3_000_000_007)
            for step in range(STEPS)
        )
        yield Records(make_metric_tags(f"s{sweep}", job, 1, host, "0.jsonl")).convert(records)
        of, whose = SweepJob(f"s{sweep}", 1, table, at, SweepSettings(metric="loss")), JobAttempt(1, host, "ana@lab")
        yield write_beginning_point(of, whose, begun, 1)
        end = EndEntry(ClaimEnd.SUCCEEDED, "", 0, exit_code=0, seconds=60.0, metrics=summary, at=begun + 60)
        yield write_end_point(of, whose, end, 2)


def name(sweep: int, job: int) -> str:
    """Return the id of a job: hexadecimal, as they are."""
    return f"{(sweep * JOBS + job) * 0x9E3779B97F4A7C15 % (1 << 64):016x}"


def fill(database: influx.Database) -> tuple[int, float]:
    """Write all points; returns how many, and the seconds that the server took."""
    count, seconds, batch = 0, 0.0, bytearray()
    for sweep in range(SWEEPS):
        for lines in points(sweep):
            batch += lines
            if len(batch) >= BATCH:
                count, seconds = count + batch.count(b"\n"), seconds + write(database, bytes(batch))
                batch.clear()
        print(f"\r{sweep + 1} of {SWEEPS} sweeps, {count:,} points", end="", flush=True)
    print()
    return count + batch.count(b"\n"), seconds + write(database, bytes(batch))


def write(database: influx.Database, lines: bytes) -> float:
    """Write lines by plain HTTP; returns the seconds that it took."""
    settings = database.settings
    url = f"{settings['url']}/api/v2/write?org=-&bucket={database.name}"
    request = urllib.request.Request(url, lines)
    request.add_header("Authorization", f"Token {settings['username']}:{database.secrets[influx.PASSWORD]}")
    while True:
        begun = time.perf_counter()
        try:
            urllib.request.urlopen(request).close()
            return time.perf_counter() - begun
        except urllib.error.HTTPError as exc:  # it gives up after ten seconds where the disk is slow, as agents know
            print(f"\n{exc.code} {exc.read().decode().strip()}", flush=True)
            if exc.code < 500:
                raise


def ask(database: influx.Database, question: str) -> tuple[float, int]:
    """Return the median of the milliseconds in which a question is answered, and how many rows come."""
    taken = []
    for _ in range(ASKED):
        begun = time.perf_counter()
        rows = database.rows(question)
        taken.append(1000 * (time.perf_counter() - begun))
    return statistics.median(taken), len(rows)


def settle(pid: int) -> float:
    """Wait until the server has put away what was written to it; returns how many seconds that took."""
    begun = time.perf_counter()
    used = cpu(pid)
    while time.perf_counter() - begun < SETTLE:
        time.sleep(3)
        before, used = used, cpu(pid)
        if used - before < 0.15:
            break
    return time.perf_counter() - begun


def cpu(pid: int) -> float:
    """Return the seconds of processors that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int, what: str) -> float:
    """Return a process's memory in MB: `VmRSS` now, `VmHWM` the most that it ever was."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) * 1024 / 1e6


def main() -> None:
    """Fill a server, ask it, and tell."""
    index = sys.argv[1] if sys.argv[1:] else "tsi1"
    with tempfile.TemporaryDirectory() as scratch, influx.serve("influxd1", Path(scratch), index) as server:
        database = server.database()
        count, seconds = fill(database)
        fresh, _ = ask(database, QUESTIONS["last by job"])
        print(f"last by job, at once {fresh:.1f} ms; put away in {settle(server.pid):.0f} s", flush=True)
        answers = {}
        for what, question in QUESTIONS.items():
            answers[what], rows = ask(database, question.format(job=name(42, 7)))
            expected = STEPS if what == "one curve" else JOBS
            assert rows == expected, f"{what}: {rows} rows, expected {expected}"
            print(f"{what:<14} {answers[what]:7.1f} ms", flush=True)
        [series] = database.rows("SHOW SERIES EXACT CARDINALITY ON " + database.name + " FROM metrics")
        peak, now = memory(server.pid, "VmHWM"), memory(server.pid, "VmRSS")
        print(f"{count:,} points, {count / seconds:,.0f} a second; {series['count']:,} series of metrics")
        print(f"{now:.0f} MB, at most {peak:.0f}")
    report(
        "metrics_layout",
        "ms",
        answers["last by job"],
        {"bar": ANSWER_BAR},
        answers["last by job"] / ANSWER_BAR,
        index=index,
        fresh_ms=round(fresh, 1),
        memory_mb=round(now),
        memory_peak_mb=round(peak),
        memory_bar_mb=MEMORY_BAR,
        points=count,
        points_a_second=round(count / seconds),
        curve_ms=round(answers["one curve"], 1),
        states_ms=round(answers["state by job"], 1),
    )


if __name__ == "__main__":
    main()
