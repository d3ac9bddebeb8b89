"""What the dashboards are made of, on top of the SDK: one way to write a panel, a variable, a colour."""

from __future__ import annotations

from typing import Any, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, dashboard, stat, statetimeline, table, timeseries, trend
from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models import dashboard as d

from dashboards.make.influx import DATASOURCE, InfluxQL

#: State of a job → colour; the same words and colours wherever a job is shown.
STATES = {"succeeded": "green", "running": "blue", "stopped": "purple", "released": "orange", "failed": "red"}
ALL = ".*"
#: What a metric is called: of the fields of `metrics`, those that are none are left out.
METRIC_NAMES = "/^(?!(?:step|kept)$)(.*)$/"
#: A job's label is its parameters and its id: the whole is shown, and the id is what is chosen.
LABEL = "/^(?<text>(?:.* · )?(?<value>[0-9a-f]+))$/"

P = TypeVar("P", bound=Any)


def board(title: str, uid: str, description: str, since: str) -> dashboard.Dashboard:
    """Return an empty dashboard that looks back to `since` ("now-6h") and links to the others."""
    others = dashboard.DashboardLink("monkey").type(d.DashboardLinkType.DASHBOARDS).tags(["monkey"])
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["monkey"])
        .readonly()
        .time(since, "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(d.DashboardCursorSync.CROSSHAIR)
        .link(others.keep_time(True).include_vars(True))
        .with_variable(DatasourceVariable("datasource").label("InfluxDB").type("influxdb"))
    )


def choice(name: str, query: str, description: str, *, several: bool = False, regex: str = "") -> QueryVariable:
    """Return a variable that is filled by a query; `several` of its values may be chosen, or all."""
    made = (
        QueryVariable(name)
        .label(name.capitalize())
        .description(description)
        .datasource(DATASOURCE)
        .definition(query)
        .query({"query": query, "refId": "InfluxVariableQueryEditor-VariableQuery"})
        .refresh(d.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(d.VariableSort.NATURAL_ASC)
    )
    if regex:
        made.regex(regex)
    if not several:
        return made
    # What is picked out of a query is picked out for "All", too.
    return made.multi(True).include_all(True) if regex else made.multi(True).include_all(True).all_value(ALL)


def panel(made: P, title: str, description: str, width: int, height: int, *queries: InfluxQL) -> P:
    """Name a panel, give it its size (of 24 columns; rows of 30 pixels) and its queries A, B, …"""
    made.title(title).description(description).datasource(DATASOURCE).span(width).height(height)
    for letter, query in zip("ABCDEFGH", queries, strict=False):
        query.ref_id = letter
        made.with_target(query)
    return made


def steps(*told: tuple[float | None, str]) -> dashboard.ThresholdsConfig:
    """Return thresholds: from a value on (None: from the least), a colour."""
    return (
        dashboard.ThresholdsConfig()
        .mode(d.ThresholdsMode.ABSOLUTE)
        .steps([d.Threshold(value=value, color=colour) for value, colour in told])
    )


LOAD = ((None, "green"), (80.0, "orange"), (95.0, "red"))
PLAIN = ((None, "text"),)


def colour(mode: d.FieldColorModeId, fixed: str = "") -> dashboard.FieldColor:
    """Return a way to colour series."""
    made = dashboard.FieldColor().mode(mode)
    return made.fixed_color(fixed) if fixed else made


def states() -> list[Any]:
    """Return the mapping of states to their colours."""
    told = {
        name: d.ValueMappingResult(text=name, color=shade, index=i) for i, (name, shade) in enumerate(STATES.items())
    }
    return [d.ValueMap(options=told)]


def override(*told: tuple[str, Any]) -> list[d.DynamicConfigValue]:
    """Return the properties of an override."""
    return [d.DynamicConfigValue(id_val=name, value=value) for name, value in told]


def without_empty(made: P) -> P:
    """Hide fields that no row has: a regular expression of fields names those of all sweeps in the database."""
    # Not by `allIsNull`, which looks at numbers alone.
    matcher = d.MatcherConfig(id_val="byValue", options={"reducer": "lastNotNull", "op": "eq", "value": None})
    return made.with_override(matcher, override(("custom.hideFrom", {"viz": True, "legend": True, "tooltip": True})))


def change(name: str, **options: Any) -> d.DataTransformerConfig:
    """Return a transformation of what the queries gave."""
    return d.DataTransformerConfig(id_val=name, options=options)


def stat_panel(*, background: bool = False, text: bool = False) -> stat.Panel:
    """Return a panel of large values; `text`: they are words, or may be."""
    shown = common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
    return (
        stat.Panel()
        .reduce_options(shown.fields("/.*/") if text else shown)
        .graph_mode(c.BigValueGraphMode.NONE)
        .color_mode(c.BigValueColorMode.BACKGROUND if background else c.BigValueColorMode.VALUE)
        .thresholds(steps(*PLAIN))
        .no_value("–")
    )


def lines(unit: str, *, fill: int = 0, points: bool = False, stacked: bool = False) -> timeseries.Panel:
    """Return a panel of curves over time."""
    made = (
        timeseries.Panel()
        .unit(unit)
        .line_width(1)
        .fill_opacity(fill)
        .show_points(c.VisibilityMode.ALWAYS if points else c.VisibilityMode.NEVER)
        .span_nulls(False)
        .color_scheme(colour(d.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .legend(legend())
        .tooltip(tooltip())
    )
    return made.stacking(common.StackingConfig().mode(c.StackingMode.NORMAL)) if stacked else made


def legend(*calcs: str) -> common.VizLegendOptions:
    """Return a legend below, as a table where it calculates something."""
    made = common.VizLegendOptions().show_legend(True).placement(c.LegendPlacement.BOTTOM).calcs(list(calcs))
    return made.display_mode(c.LegendDisplayMode.TABLE if calcs else c.LegendDisplayMode.LIST)


def ranking() -> common.VizLegendOptions:
    """Return a legend beside the curves, in their order."""
    return legend("lastNotNull").placement(c.LegendPlacement.RIGHT).width(300.0)


def tooltip() -> common.VizTooltipOptions:
    """Return a tooltip that tells of all curves, greatest first."""
    return common.VizTooltipOptions().mode(c.TooltipDisplayMode.MULTI).sort(c.SortOrder.DESCENDING)


def by_step(made: trend.Panel) -> trend.Panel:
    """Draw over `step` what a table tells as rows of `step`, a tag and `value`: one curve for each value of the tag."""
    return (
        made.x_field("step")
        .line_width(1)
        .show_points(c.VisibilityMode.AUTO)
        .span_nulls(True)
        .color_scheme(colour(d.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
        .legend(legend())
        .tooltip(tooltip())
    )


def labelled_matrix(over: str) -> list[d.DataTransformerConfig]:
    """Return what turns rows of `over`, `job` and `value`, and a table of jobs, into a column for each job, best first.

    The second table has the jobs' labels; a column is called by the parameters in it, and the beginning of the id.
    """
    time_of_labels = d.DataTransformerConfig(
        id_val="organize",
        options={"excludeByName": {"Time": True}},
        filter_val=d.MatcherConfig(id_val="byRefId", options="B"),
    )
    return [
        time_of_labels,
        change("joinByField", byField="job", mode="inner"),
        change("sortBy", fields={}, sort=[{"field": "ranked", "desc": True}]),
        *matrix("label", over),
        change("renameByRegex", regex=r"^((?:.* · )?[0-9a-f]{8})[0-9a-f]{8}$", renamePattern="$1"),
    ]


def matrix(tag: str, over: str = "step") -> list[d.DataTransformerConfig]:
    """Return what turns rows of `over`, a tag and `value` into a column for each value of the tag."""
    return [
        change("filterByValue", type="exclude", match="any", filters=[_null(over), _null("value")]),
        # A copy: columns made of `value` itself would all be called so, as that name is the data source's.
        change("calculateField", mode="binary", alias="curve", binary={"left": "value", "operator": "*", "right": "1"}),
        change("groupingToMatrix", columnField=tag, rowField=over, valueField="curve", emptyValue="null"),
        change("organize", renameByName={f"{over}\\{tag}": over}, excludeByName={}),
        change("sortBy", fields={}, sort=[{"field": over, "desc": False}]),
    ]


def _null(field: str) -> dict[str, Any]:
    return {"fieldName": field, "config": {"id": "isNull", "options": {}}}


def rows() -> table.Panel:
    """Return a table."""
    return table.Panel().cell_height(c.TableCellHeight.SM).filterable(True).show_header(True)


def bars() -> bargauge.Panel:
    """Return horizontal bars."""
    return (
        bargauge.Panel()
        .orientation(c.VizOrientation.HORIZONTAL)
        .display_mode(c.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def timeline() -> statetimeline.Panel:
    """Return a panel of states over time."""
    return (
        statetimeline.Panel()
        .merge_values(True)
        .show_value(c.VisibilityMode.AUTO)
        .row_height(0.85)
        .line_width(0)
        .fill_opacity(75)
        .legend(
            common.VizLegendOptions()
            .show_legend(False)
            .display_mode(c.LegendDisplayMode.LIST)
            .placement(c.LegendPlacement.BOTTOM)
            .calcs([])
        )
    )
