"""A job's dashboard: its attempts, its curves, and what it used of its machine."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, trend

from dashboards.make.influx import InfluxQL, latest, rate, table
from dashboards.make.parts import (
    METRIC_NAMES,
    board,
    by_step,
    change,
    choice,
    lines,
    matrix,
    override,
    panel,
    rows,
    stat_panel,
    states,
    timeline,
)
from dashboards.make.sweep import SWEEP, curve, job_choice, revision_choice

JOB = '"job" = ${job:singlequote}'
WHERE = f"{SWEEP} AND {JOB}"
#: Jobs to choose from, and points of a curve.
_JOBS, _POINTS = 1_000, 2_000


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = board("Job", "monkey-job", "A job: its attempts, its curves, and what it used of its machine.", "now-6h")
    for variable in _variables():
        made.with_variable(variable)
    for part in (*_numbers(), *_attempts(), *_told()):
        made.with_panel(part)
    made.with_row(dashboard.Row("Curves")).with_panel(_curve())
    made.with_row(dashboard.Row("What it used"))
    for part in _used():
        made.with_panel(part)
    return made


def _variables() -> list[dashboard.QueryVariable]:
    return [
        choice("sweep", 'SHOW TAG VALUES FROM "jobs" WITH KEY = "sweep"', "A sweep that was applied."),
        revision_choice(),
        job_choice(_JOBS, f"One of its jobs: {_JOBS:,} at most, the best ones. Another's page is behind its row."),
        choice(
            "metric",
            'SHOW FIELD KEYS FROM "metrics"',
            "What curves are drawn of, each in a row of its own.",
            regex=METRIC_NAMES,
        ).multi(True),
    ]


def _newest(field: str) -> str:
    """Return the query for a field of the job's newest point: nothing where that has none."""
    return f'SELECT "{field}" FROM "jobs" WHERE {WHERE} ORDER BY time DESC LIMIT 1'


def _numbers() -> list[object]:
    return [
        panel(
            stat_panel(background=True, text=True).mappings(states()),
            "State",
            "The newest that is known: the end of an attempt, or its beginning.",
            5,
            4,
            InfluxQL(_newest("state"), "state"),
        ),
        panel(stat_panel(), "Attempt", "1 for the first.", 3, 4, InfluxQL(_newest("attempt"), "attempt")),
        panel(stat_panel(text=True), "Machine", "Where the attempt runs, or ran.", 6, 4, InfluxQL(_newest("host"))),
        panel(
            stat_panel().unit("s").decimals(1),
            "It took",
            "All its attempts, to the end of the newest.",
            5,
            4,
            InfluxQL(_newest("seconds"), "seconds"),
        ),
        panel(
            stat_panel(),
            "Result",
            "The last value of the metric that the spec names.",
            5,
            4,
            InfluxQL(_newest("objective"), "result"),
        ),
    ]


def _attempts() -> list[object]:
    past = rows().override_by_name(
        "state", override(("mappings", states()), ("custom.cellOptions", {"type": "color-text"}), ("custom.width", 100))
    )
    past.override_by_name("seconds", override(("unit", "s"))).override_by_name("Time", override(("displayName", "at")))
    for field in ("attempt", "seconds", "exit_code"):
        past.override_by_name(field, override(("custom.width", 90)))
    return [
        panel(
            timeline().mappings(states()),
            "Attempts",
            "Which state the job was in, and on which machine.",
            24,
            5,
            InfluxQL(f'SELECT "state" FROM "jobs" WHERE {WHERE} AND $timeFilter', "state"),
            InfluxQL(f'SELECT "host" FROM "jobs" WHERE {WHERE} AND $timeFilter', "machine"),
        ),
        panel(
            past,
            "Beginnings and ends",
            "Each time that the job began or ended, newest first.",
            12,
            9,
            table(
                f'SELECT "state", "attempt", "host", "seconds", "exit_code", "reason" FROM "jobs" WHERE {WHERE} '
                "ORDER BY time DESC"
            ),
        ),
    ]


def _told() -> list[object]:
    return [_list("Parameters", "What the job was run with.", "param"), _list("Finals", _FINALS, "final")]


_FINALS = "The last value of each metric."


def _list(title: str, description: str, kind: str) -> object:
    """Return a table of a row for each field that begins so."""
    made = rows().transformations(
        [
            change(
                "organize", excludeByName={"Time": True, "state": True, "job": True}, renameByName={}, indexByName={}
            ),
            change("renameByRegex", regex=f"^{kind}_(.*)$", renamePattern="$1"),
            change("reduce", mode="seriesToRows", reducers=["lastNotNull"], includeTimeField=False),
            change("filterByValue", type="exclude", match="any", filters=[_NONE]),
            change("organize", excludeByName={}, renameByName={"Field": "name", "Last *": "value"}),
        ]
    )
    return panel(made, title, description, 6, 9, table(latest(f"/^{kind}_/", WHERE, "job")))


#: A field without a value; it was made NaN when it became a row.
_NONE = {"fieldName": "Last *", "config": {"id": "regex", "options": {"value": "^NaN$"}}}


def _curve() -> object:
    return panel(
        by_step(trend.Panel())
        .transformations([*matrix("rank"), change("renameByRegex", regex="^(?!step$)(.+)$", renamePattern="rank $1")])
        .repeat("metric")
        .repeat_direction("h")
        .max_per_row(2),
        "$metric by step",
        "A curve for each of the job's processes that logged it; what an attempt logged after the checkpoint that the "
        "next one began from is left out.",
        24,
        9,
        table(curve("rank", JOB, _POINTS)),
    )


def _system(fields: str) -> str:
    return f'SELECT {fields} FROM "system" WHERE {JOB} AND $timeFilter GROUP BY time($__interval), "host" fill(none)'


def _used() -> list[object]:
    return [
        panel(
            lines("percent", fill=10).min(0.0),
            "CPU",
            "100 % is one CPU.",
            12,
            8,
            InfluxQL(_system('mean("cpu_percent")'), "$tag_host"),
        ),
        panel(
            lines("bytes", fill=10).min(0.0),
            "Memory",
            "Of all its processes; what they share counts once.",
            12,
            8,
            InfluxQL(_system('max("memory_bytes")'), "$tag_host"),
        ),
        panel(
            lines("percent", fill=10).min(0.0).max(100.0).no_value("it has no GPU"),
            "GPUs",
            "How busy its GPUs are, on average.",
            12,
            8,
            InfluxQL(_system('mean("gpu_percent")'), "$tag_host"),
        ),
        panel(
            lines("bytes", fill=10).min(0.0).no_value("it has no GPU"),
            "GPU memory",
            "Of all its GPUs.",
            12,
            8,
            InfluxQL(_system('max("gpu_memory_bytes")'), "$tag_host"),
        ),
        panel(
            lines("Bps", fill=10).min(0.0),
            "Disk",
            "What it reads and writes: of disks, not of the kernel's cache.",
            24,
            7,
            InfluxQL(rate("disk_read_bytes", JOB, "none"), "read, $tag_host"),
            InfluxQL(rate("disk_write_bytes", JOB, "none"), "written, $tag_host"),
        ),
    ]
