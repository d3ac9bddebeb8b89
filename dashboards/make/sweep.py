"""The sweep's dashboard: how far it is, how good its best is, what its jobs learn, and each job in a table."""

from __future__ import annotations

from grafana_foundation_sdk.builders import common, dashboard, trend, xychart
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d
from grafana_foundation_sdk.models import xychart as x

from dashboards.make.influx import InfluxQL, latest, table
from dashboards.make.parts import (
    LABEL,
    METRIC_NAMES,
    STATES,
    board,
    by_step,
    change,
    choice,
    colour,
    labelled_matrix,
    lines,
    override,
    panel,
    ranking,
    rows,
    stat_panel,
    states,
    steps,
    tooltip,
    without_empty,
)

SWEEP = '"sweep" = ${sweep:singlequote}'
#: Jobs of the newest revision.
CURRENT = f'{SWEEP} AND "revision" >= ${{revision:raw}}'
#: The curves are of so many jobs at most, the best ones: a browser draws no ten thousand. And of so many points each.
CURVES, POINTS = 100, 500
#: Of each job, its newest point.
_JOBS = f'SELECT last("state") AS "state" FROM "jobs" WHERE {CURRENT} GROUP BY "job"'
#: A job's page, for the job in the cell.
JOB_PAGE = "/d/monkey-job?${datasource:queryparam}&${sweep:queryparam}&var-job=${__value.raw}&${__url_time_range}"


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = board("Sweep", "monkey-sweep", "A sweep: its jobs, their results and their curves.", "now-6h")
    for variable in variables():
        made.with_variable(variable)
    for part in (*_numbers(), *_over_time(), *_curves(), _table()):
        made.with_panel(part)
    return made


def variables() -> list[dashboard.QueryVariable]:
    """Return what is chosen at the top; the hidden one tells by which metric the sweep is judged."""
    return [
        choice("sweep", 'SHOW TAG VALUES FROM "jobs" WITH KEY = "sweep"', "A sweep that was applied."),
        revision_choice(),
        choice(
            "metric",
            'SHOW FIELD KEYS FROM "metrics"',
            "What the curves are of. The headline figures are of the sweep's own metric, whatever is chosen here.",
            regex=METRIC_NAMES,
        ),
        choice(
            "parameter",
            'SHOW FIELD KEYS FROM "jobs"',
            "The parameter that the results are drawn over: any that has numbers.",
            regex="/^(?<value>number_(?<text>.*))$/",
        ),
        job_choice(CURVES, f"Whose curves are drawn: {CURVES} at most, the best ones.", several=True),
        choice("objective", f'SELECT last("metric") FROM "jobs" WHERE {SWEEP}', "The metric that the spec names.").hide(
            d.VariableHide.HIDE_VARIABLE
        ),
    ]


def revision_choice() -> dashboard.QueryVariable:
    """Return the hidden variable that has the newest revision of which InfluxDB knows all jobs."""
    query = f'SELECT max("since") FROM "jobs" WHERE {SWEEP}'
    return choice("revision", query, "What is counted.").hide(d.VariableHide.HIDE_VARIABLE)


def job_choice(most: int, description: str, *, several: bool = False) -> dashboard.QueryVariable:
    """Return a variable of the best jobs, called by their parameters that vary."""
    jobs = latest('"ranked", "label"', CURRENT, "job")
    best = f'SELECT top("ranked", {most}), "label" FROM ({jobs})'
    return choice("job", f'SELECT "label" FROM ({best})', description, several=several, regex=LABEL)


def _count(state: str) -> str:
    return f'SELECT count("state") FROM ({_JOBS}) WHERE "state" = \'{state}\''


def _numbers() -> list[object]:
    tiles = stat_panel(background=True).orientation(c.VizOrientation.VERTICAL)
    for state, shade in STATES.items():
        tiles.override_by_name(state, override(("color", {"mode": "fixed", "fixedColor": shade})))
    return [
        panel(
            tiles,
            "Jobs",
            "All jobs of the newest revision, and how many were in each state when last heard of. The rest wait. "
            "*stopped* met a condition of `stop_when`; *released* is given back: another machine goes on with it.",
            11,
            5,
            InfluxQL(f'SELECT last("jobs") FROM "jobs" WHERE {CURRENT}', "in the sweep"),
            *(InfluxQL(_count(state), state) for state in STATES),
        ),
        panel(
            stat_panel().color_scheme(colour(d.FieldColorModeId.FIXED, "green")),
            "Best $objective so far",
            "Of all jobs that succeeded or met a goal of the sweep, by the metric and goal of the spec.",
            5,
            5,
            InfluxQL(
                f'SELECT "objective" FROM (SELECT max("ranked"), "objective" FROM ({_NEWEST}) WHERE {_COUNTS})', "best"
            ),
        ),
        panel(
            stat_panel().unit("s").decimals(1),
            "A job takes",
            "The median of the jobs that succeeded, each with all its attempts.",
            4,
            5,
            InfluxQL(
                f'SELECT median("seconds") FROM ({_TAKEN}) WHERE "state" = \'succeeded\'',
                "median",
            ),
        ),
        panel(
            stat_panel().thresholds(steps((None, "text"), (1.0, "orange"))).no_value("0"),
            "Values not finite",
            "NaN and infinities that jobs logged. They are counted, and left out of all curves.",
            4,
            5,
            InfluxQL(
                f'SELECT sum("nonfinite") FROM (SELECT last("nonfinite") AS "nonfinite" FROM "jobs" WHERE {CURRENT} '
                'GROUP BY "job")',
                "not finite",
            ),
        ),
    ]


#: What `monkey results` takes for a result.
_COUNTS = '"counts" = true'
_RESULTS = f"{CURRENT} AND {_COUNTS}"
#: Of each job, its newest point: one that was stopped goes on when the condition is altered, and ends anew.
_NEWEST = latest('"ranked", "objective", "counts"', CURRENT, "job")


_TAKEN = latest('"seconds"', CURRENT, "job")


def _over_time() -> list[object]:
    ended = lines("short", fill=80, stacked=True).draw_style(c.GraphDrawStyle.BARS).min(0.0).decimals(0)
    for state, shade in STATES.items():
        ended.override_by_name(state, override(("color", {"mode": "fixed", "fixedColor": shade})))
    came = lines("", points=True).draw_style(c.GraphDrawStyle.POINTS).point_size(6).no_value("no job has ended")
    came.override_by_name(
        "best of the while",
        override(
            ("custom.drawStyle", "line"),
            ("custom.lineInterpolation", "stepAfter"),
            ("custom.lineWidth", 2),
            ("custom.showPoints", "never"),
            ("custom.spanNulls", True),
            ("color", {"mode": "fixed", "fixedColor": "green"}),
        ),
    ).override_by_name("a job", override(("color", {"mode": "fixed", "fixedColor": "semi-dark-blue"})))
    over = '${parameter:doublequote} AS "parameter", "objective", "counts"'
    return [
        panel(
            ended.interval("10s").max_data_points(60),
            "Attempts ended",
            "How many attempts ended in each while, and how; of jobs of earlier revisions, too.",
            8,
            8,
            *(InfluxQL(_ended(state), state) for state in STATES if state != "running"),
        ),
        panel(
            came.interval("10s").max_data_points(60),
            "$objective as it came",
            "The result of each job at the time of its end, and the best of each while.",
            8,
            8,
            InfluxQL(f'SELECT "objective" FROM "jobs" WHERE {_RESULTS} AND $timeFilter', "a job"),
            InfluxQL(
                f'SELECT "objective" FROM (SELECT max("ranked"), "objective" FROM "jobs" WHERE {_RESULTS} '
                "AND $timeFilter "
                "GROUP BY time($__interval))",
                "best of the while",
            ),
        ),
        panel(
            _scatter(),
            "$objective over ${parameter:text}",
            "A point for each job that succeeded or met a goal of the sweep.",
            8,
            8,
            table(f'SELECT "parameter", "objective" FROM ({latest(over, CURRENT, "job")}) WHERE {_COUNTS}'),
        ),
    ]


def _ended(state: str) -> str:
    return (
        f'SELECT count("state") FROM "jobs" WHERE {SWEEP} AND "state" = \'{state}\' AND $timeFilter '
        "GROUP BY time($__interval) fill(0)"
    )


def curve(by: str, more: str, points: int) -> str:
    """Return the query of the chosen metric's curves: for each value of the tag `by`, so many of its points at most.

    They are taken at random, whatever the range of time, and the last one with them. What was abandoned, as a later
    attempt began before it, is left out.
    """
    where = f'{SWEEP} AND "kept" = true AND {more} AND $timeFilter GROUP BY "{by}"'
    some = f'SELECT sample(${{metric:doublequote}}, {points}) AS "value", "step" FROM "metrics" WHERE {where}'
    newest = f'SELECT last(${{metric:doublequote}}) AS "value", "step" FROM "metrics" WHERE {where}'
    return f'SELECT "value", "step" FROM ({some}), ({newest}) GROUP BY "{by}"'


def _curves() -> list[object]:
    queries = (
        table(curve("job", '"job" =~ /^${job:regex}$/', POINTS)),
        table(latest('"label", "ranked"', CURRENT, "job")),
    )
    return [
        panel(
            by_step(trend.Panel()).legend(ranking()).transformations(labelled_matrix("step")),
            "$metric by step",
            f"A curve for each job, the best first ({CURVES} at most: choose jobs above). Long curves are thinned: "
            "each point is one that was logged.",
            12,
            10,
            *queries,
        ),
        panel(
            lines("", points=True).point_size(3).legend(ranking()).transformations(labelled_matrix("Time")),
            "$metric by time",
            "The same by the clock: which jobs ran beside each other, and which stand still.",
            12,
            10,
            *queries,
        ),
    ]


def _scatter() -> xychart.Panel:
    series = (
        xychart.XYSeriesConfig()
        .x(xychart.XychartXYSeriesConfigX().matcher(xychart.MatcherConfig().id("byName").options("parameter")))
        .y(xychart.XychartXYSeriesConfigY().matcher(xychart.MatcherConfig().id("byName").options("objective")))
    )
    made = xychart.Panel().mapping(x.SeriesMapping.MANUAL).series([series]).show(x.XYShowMode.POINTS)
    made.point_size(xychart.XychartFieldConfigPointSize().fixed(8)).legend(common.VizLegendOptions().show_legend(False))
    for field, label in (("parameter", "${parameter:text}"), ("objective", "$objective")):
        made.override_by_name(field, override(("custom.axisLabel", label)))
    return made.color_scheme(colour(d.FieldColorModeId.FIXED, "semi-dark-blue")).tooltip(tooltip())


def _table() -> object:
    shown = '"attempt", "host", "user", "seconds", "reason", "ranked", /^param_/, /^final_/'
    made = without_empty(rows()).transformations(
        [
            change("sortBy", fields={}, sort=[{"field": "ranked", "desc": True}]),
            change("organize", excludeByName={"ranked": True}, renameByName={"Time": "since"}),
            change("renameByRegex", regex="^(?:param|final)_(.*)$", renamePattern="$1"),
        ]
    )
    made.override_by_name("since", override(("unit", "dateTimeFromNow"), ("custom.width", 120)))
    made.override_by_name(
        "job",
        override(
            ("custom.width", 160),
            ("links", [{"title": "this job", "url": JOB_PAGE}]),
        ),
    )
    made.override_by_name(
        "state",
        override(
            ("mappings", states()),
            ("custom.cellOptions", {"type": "color-background", "mode": "basic"}),
            ("custom.width", 100),
        ),
    )
    made.override_by_name("attempt", override(("custom.width", 80)))
    made.override_by_name("seconds", override(("unit", "s"), ("custom.width", 100)))
    return panel(
        made,
        "Jobs, best first",
        "The newest that is known of each job: its state, its parameters, and the last value of each of its metrics.",
        24,
        14,
        table(latest(shown, CURRENT, "job")),
    )
