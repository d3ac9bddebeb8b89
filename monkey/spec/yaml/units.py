"""Durations, sizes and numbers of GPUs as people write them."""

from __future__ import annotations

import re
from typing import Any

from monkey.spec.yaml.mistakes import describe_value, make_mistake_error

_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?[wdhms])+\Z")
#: Seconds as a command line gives them. Eight digits are a day: 20261201.
_SECONDS_ALONE = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,9})?\Z")
_PART = re.compile(r"([0-9.]+)([wdhms])")
_BYTES = {"B": 1, **{f"{p}B": 1000**n for n, p in enumerate("kMGTP", 1)}, "KB": 1000}
_BYTES |= {f"{p}iB": 1024**n for n, p in enumerate("KMGTP", 1)}
#: Most GPUs of one job.
_MAX_GPUS = 1024
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([kKMGTP]?i?B)\Z")


def parse_duration(value: Any) -> float:
    """Return seconds: "2h", "30m", "1d12h", "1.5h", or a number of seconds. Raises MistakesError."""
    given = value
    if isinstance(value, str) and _DURATION.match(value):
        value = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(value))
    elif isinstance(value, str) and _SECONDS_ALONE.match(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e10:
        raise make_mistake_error(
            f"expected a duration, found {describe_value(given)}",
            'write it like "2h", "30m", "1d12h", or in seconds, more than 0',
        )
    return float(value)


def format_duration(seconds: float) -> str:
    """Return a duration as people write it: 90 is "1m30s"."""
    if seconds < 60:
        return f"{seconds:g}s"
    whole = round(seconds)
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    return "".join(f"{n}{unit}" for n, unit in parts if n)


def parse_size(value: Any) -> int:
    """Return bytes: "2GiB", "512MB", or a number of bytes. Raises MistakesError."""
    if isinstance(value, str) and (match := _SIZE.match(value)) and match[2] in _BYTES:
        value = int(float(match[1]) * _BYTES[match[2]])
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 60:
        raise make_mistake_error(
            f"expected a size, found {describe_value(value)}", 'write it like "2GiB" or "512MB", or in bytes'
        )
    return value


def parse_gpu_count(raw: Any) -> float:
    """Return a number of GPUs, or a part of one that several jobs share, in thousandths at most.

    Raises MistakesError.
    """
    if isinstance(raw, int | float) and raw > _MAX_GPUS:
        raise make_mistake_error(f"expected at most {_MAX_GPUS}, found {raw:g}", f"write at most {_MAX_GPUS}")
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not raw >= 0:
        raise make_mistake_error(
            f"expected a number of GPUs, found {describe_value(raw)}", "write gpus: 1, or a part of one: 0.5"
        )
    if raw == int(raw):
        return int(raw)
    if raw > 1:
        hint = f"a job has whole GPUs, or a part of one: write {int(raw)} or {int(raw) + 1}, or 0.5"
        raise make_mistake_error(f"expected whole GPUs, or less than one, found {raw:g}", hint)
    if round(raw, 3) != raw:
        hint = f"write {max(int(raw * 1000), 1) / 1000:g}: then {min(int(1 / raw), 1000)} jobs share a GPU"
        raise make_mistake_error(f"expected a part of a GPU with three decimals at most, found {raw:g}", hint)
    return raw
