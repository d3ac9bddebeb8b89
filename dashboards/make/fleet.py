"""The fleet's dashboard: which machines there are, whether they are heard of, and how busy they are."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as d

from dashboards.make.influx import InfluxQL, latest, rate, table
from dashboards.make.parts import LOAD, bars, board, choice, lines, override, panel, rows, stat_panel, steps, timeline

CHOSEN = '"fleet" =~ /^${fleet:regex}$/ AND "host" =~ /^${host:regex}$/'
#: What is told of a machine as a whole, by its agent: neither of a job nor of one GPU.
MACHINE = f"{CHOSEN} AND \"job\" = '' AND \"gpu\" = ''"
#: A machine that was not heard of for so long is not counted: eight samples.
LATELY = "time > now() - 2m"


def build() -> dashboard.Dashboard:
    """Return the dashboard."""
    made = board("Fleet", "monkey-fleet", "The machines: heartbeats, load and what runs on them.", "now-3h")
    for variable in _variables():
        made.with_variable(variable)
    for part in (*_numbers(), _machines(), _beats(), *_load()):
        made.with_panel(part)
    made.with_row(dashboard.Row("GPUs"))
    for part in _gpus():
        made.with_panel(part)
    made.with_row(dashboard.Row("Disk and network"))
    for part in _traffic():
        made.with_panel(part)
    return made


def _variables() -> list[dashboard.QueryVariable]:
    return [
        choice("fleet", 'SHOW TAG VALUES FROM "system" WITH KEY = "fleet"', "A provider's machines.", several=True),
        choice(
            "host",
            'SHOW TAG VALUES FROM "system" WITH KEY = "host" WHERE "fleet" =~ /^${fleet:regex}$/',
            "A machine.",
            several=True,
        ),
    ]


def _sum(field: str) -> str:
    return f'sum("{field}") FROM (SELECT last("{field}") AS "{field}" FROM "system" WHERE {MACHINE} AND {LATELY} '


def _numbers() -> list[object]:
    heard = f'SELECT last("cpu_percent") AS "cpu" FROM "system" WHERE {MACHINE} AND {LATELY} GROUP BY "host"'
    used = f'SELECT last("busy") AS "busy", last("slots") AS "slots" FROM "system" WHERE {MACHINE} AND {LATELY}'
    return [
        panel(
            stat_panel(background=True).thresholds(steps((None, "red"), (1.0, "green"))).no_value("none"),
            "Machines",
            "Heard of in the last two minutes.",
            4,
            4,
            InfluxQL(f'SELECT count("cpu") FROM ({heard})', "machines"),
        ),
        panel(
            stat_panel(),
            "Jobs running",
            "On these machines, now.",
            4,
            4,
            InfluxQL(f'SELECT {_sum("busy")}GROUP BY "agent")', "running"),
        ),
        panel(
            stat_panel(),
            "Slots",
            "How many jobs they could run at once.",
            4,
            4,
            InfluxQL(f'SELECT {_sum("slots")}GROUP BY "agent")', "slots"),
        ),
        panel(
            stat_panel().unit("percent").decimals(0),
            "Slots in use",
            "What is paid for and idle is what lacks to 100 %.",
            4,
            4,
            InfluxQL(f'SELECT 100 * sum("busy") / sum("slots") FROM ({used} GROUP BY "agent")', "in use"),
        ),
        panel(
            bars().unit("percent").min(0.0).max(100.0).thresholds(steps(*LOAD)).no_value("none"),
            "CPU now",
            "All CPUs of each machine.",
            8,
            4,
            InfluxQL(heard, "$tag_host"),
        ),
    ]


def _machines() -> object:
    percent = override(
        ("unit", "percent"),
        ("min", 0),
        ("max", 100),
        ("decimals", 0),
        ("thresholds", steps(*LOAD).build()),
        ("custom.cellOptions", {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}),
    )
    made = rows().override_by_name(
        "Time", override(("displayName", "heard of"), ("unit", "dateTimeFromNow"), ("custom.width", 160))
    )
    for field, name in (("cpu_percent", "CPU"), ("memory_percent", "memory"), ("disk_used_percent", "disk")):
        made.override_by_name(field, [*percent, *override(("displayName", name))])
    made.override_by_name("memory_bytes", override(("unit", "bytes"), ("displayName", "memory used")))
    for field in ("busy", "slots"):
        made.override_by_name(field, override(("custom.width", 80)))
    fields = '"fleet", "busy", "slots", "memory_percent", "memory_bytes", "disk_used_percent"'
    return panel(
        made,
        "The machines",
        "The newest sample of each, and when it came.",
        24,
        9,
        table(latest(fields, f"{MACHINE} AND $timeFilter", "host", "system", "cpu_percent")),
    )


def _beats() -> object:
    # Pieces of time that end now: of those that begin with the minute, the last is short and often empty.
    told = [
        d.ValueMap(options={"0": d.ValueMappingResult(text="silent", color="red", index=0)}),
        d.RangeMap(
            options=d.DashboardRangeMapOptions(
                from_val=1, to=None, result=d.ValueMappingResult(text="heard of", color="green", index=1)
            )
        ),
    ]
    query = f'SELECT count("cpu_percent") FROM "system" WHERE {MACHINE} AND $timeFilter AND time < now() '
    return panel(
        timeline().mappings(told).interval("1m").max_data_points(400),
        "Heartbeats",
        "Each machine, over time: red where nothing was heard of it.",
        24,
        7,
        InfluxQL(f'{query}GROUP BY time($__interval, now()), "host" fill(0)', "$tag_host"),
    )


def _over(what: str, where: str = MACHINE, by: str = '"host"') -> str:
    # A piece of time without a sample is a gap to be seen; each is of two samples at least (`interval` of the panels).
    return f'SELECT {what} FROM "system" WHERE {where} AND $timeFilter GROUP BY time($__interval), {by} fill(null)'


def _load() -> list[object]:
    inner = f'SELECT mean("busy") AS "busy", mean("slots") AS "slots" FROM "system" WHERE {MACHINE} AND $timeFilter '
    inner += 'GROUP BY time($__interval), "agent" fill(none)'
    slots = lines("short", fill=20).min(0.0).interval("30s")
    slots.override_by_name("slots", override(("color", {"mode": "fixed", "fixedColor": "text"})))
    slots.override_by_name("busy", override(("color", {"mode": "fixed", "fixedColor": "blue"})))
    return [
        panel(
            slots,
            "Slots and jobs",
            "How many jobs run, and how many could.",
            8,
            8,
            InfluxQL(
                f'SELECT sum("busy") FROM ({inner}) WHERE $timeFilter GROUP BY time($__interval) fill(none)', "busy"
            ),
            InfluxQL(
                f'SELECT sum("slots") FROM ({inner}) WHERE $timeFilter GROUP BY time($__interval) fill(none)', "slots"
            ),
        ),
        panel(
            lines("percent").min(0.0).max(100.0).interval("30s"),
            "CPU",
            "All CPUs of a machine.",
            8,
            8,
            InfluxQL(_over('mean("cpu_percent")'), "$tag_host"),
        ),
        panel(
            lines("percent").min(0.0).max(100.0).interval("30s"),
            "Memory",
            "What is in use, without the kernel's cache.",
            8,
            8,
            InfluxQL(_over('max("memory_percent")'), "$tag_host"),
        ),
    ]


def _gpus() -> list[object]:
    where, by = f"{CHOSEN} AND \"gpu\" != ''", '"host", "gpu"'

    def drawn(title: str, description: str, unit: str, what: str) -> object:
        made = lines(unit).min(0.0).interval("30s").no_value("no machine has one")
        return panel(made, title, description, 6, 8, InfluxQL(_over(what, where, by), "$tag_host, $tag_gpu"))

    return [
        drawn("GPUs busy", "The share of time in which a kernel ran.", "percent", 'mean("gpu_percent")'),
        drawn("GPU memory", "What is in use.", "bytes", 'max("gpu_memory_bytes")'),
        drawn("GPU power", "What it draws.", "watt", 'mean("gpu_power_watts")'),
        drawn("GPU temperature", "Its core's.", "celsius", 'max("gpu_temperature")'),
    ]


def _traffic() -> list[object]:
    def grown(field: str) -> str:
        return rate(field, MACHINE, "null")

    return [
        panel(
            lines("percent").min(0.0).max(100.0).thresholds(steps(*LOAD)).interval("30s"),
            "Disk full",
            "The disk on which jobs work: what is in use of it.",
            8,
            8,
            InfluxQL(_over('last("disk_used_percent")'), "$tag_host"),
        ),
        panel(
            lines("Bps").min(0.0).interval("30s"),
            "Disk",
            "Read and written.",
            8,
            8,
            InfluxQL(grown("disk_read_bytes"), "read, $tag_host"),
            InfluxQL(grown("disk_write_bytes"), "written, $tag_host"),
        ),
        panel(
            lines("Bps").min(0.0).interval("30s"),
            "Network",
            "Received and sent.",
            8,
            8,
            InfluxQL(grown("net_received_bytes"), "received, $tag_host"),
            InfluxQL(grown("net_sent_bytes"), "sent, $tag_host"),
        ),
    ]
