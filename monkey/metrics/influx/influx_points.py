"""Points as InfluxDB takes them, in line protocol. Pure: what is the same in the store makes the same points.

So what was sent twice is there once, and what was lost with a database is made again from the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from monkey.metrics import names
from monkey.metrics.summary import is_finite

Field = float | int | str | bool

#: Characters of a text field that are kept.
MAX_TEXT = 1_000
#: What InfluxDB can hold as an integer, and as a timestamp in nanoseconds.
MAX_INTEGER = 1 << 63
MAX_TIME = MAX_INTEGER - 2

_SPECIAL = re.compile(r"[,= ]")
#: A backslash that what follows it would make an escape; line protocol has no way to write it.
_AMBIGUOUS = re.compile(r"\\(?=[,= \\]|$)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def escape_tag(text: str) -> str:
    """Return a tag's value, or the name of a tag or field, as it stands in a line."""
    return _SPECIAL.sub(r"\\\g<0>", _AMBIGUOUS.sub("/", _CONTROL.sub(" ", text)))


def name_metric_field(name: str) -> str:
    """Return the field of a metric, not escaped: no two have the same."""
    return f"{name}_" if name.rstrip("_") in names.RESERVED else name


def write_tags(measurement: str, tags: Mapping[str, str]) -> bytes:
    """Return the beginning of a line, up to its fields. Tags that are empty are left out: there are no such."""
    told = "".join(f",{escape_tag(key)}={escape_tag(value)}" for key, value in sorted(tags.items()) if value)
    return f"{measurement}{told}".encode(errors="replace")


def write_point(measurement: str, tags: Mapping[str, str], fields: Mapping[str, Field], ns: int) -> bytes:
    """Return a line with its newline; `ns`: nanoseconds since the epoch.

    b"" where no field can be sent: what is not finite, or an integer of more than 64 bits, is left out.
    """
    told = ",".join(f"{escape_tag(name)}={text}" for name, value in fields.items() if (text := _text(value)))
    return write_tags(measurement, tags) + f" {told} {ns}\n".encode(errors="replace") if told else b""


def _text(value: Field) -> str:
    if isinstance(value, str):
        kept = _CONTROL.sub(" ", value[:MAX_TEXT]).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{kept}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}i" if -MAX_INTEGER <= value < MAX_INTEGER else ""
    return repr(value) if is_finite(value) else ""


# -- what jobs log ----------------------------------------------------------------------------------------------------


def parse_agent_machine(agent: str) -> str:
    """Return the tag `host` of what an agent ("fleet/name/boot", as claims and ends have it) ran."""
    return [*agent.split("/"), ""][1]


def parse_rank(file: str) -> str:
    """Return the tag `rank` of what stands in a metrics file, from its name: "0.jsonl" is rank 0.

    Not by the order in which files came: who reads them again later must find the same.
    """
    return quote(file.removesuffix(".jsonl").encode(errors="surrogateescape"), safe=" @+:~") or "0"


def make_metric_tags(sweep: str, job: str, attempt: int, host: str, file: str, user: str = "") -> dict[str, str]:
    """Return the tags of what one process of one attempt logs; `attempt`: 1 for the first, `file`: its name.

    `user`: who applied the revision.
    """
    return {
        names.SWEEP: sweep,
        names.JOB: job,
        names.ATTEMPT: str(attempt),
        names.HOST: host,
        names.RANK: parse_rank(file),
        names.USER: user,
    }


def convert_to_float(value: float) -> float | None:
    """Return a number as a float; None where it is not finite, or too large a whole one."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if is_finite(number) else None


# -- machines ---------------------------------------------------------------------------------------------------------


def write_system_point(
    fields: Mapping[str, float], ns: int, *, host: str, fleet: str, agent: str, job: str = "", gpu: str = ""
) -> bytes:
    """Return the line of what a machine did at `ns`; `job`, `gpu`: of one of them alone. All its fields are floats."""
    tags = {names.HOST: host, names.FLEET_TAG: fleet, names.AGENT: agent, names.JOB: job, names.GPU: gpu}
    return write_point(names.SYSTEM, tags, {name: float(value) for name, value in fields.items()}, ns)
