"""Numbers of bytes, as people read them. By itself: what says nothing else need not import the plan."""

from __future__ import annotations

import math


def format_size(count: float) -> str:
    """Say a number of bytes: "12.3 KiB"."""
    if count < 1024:
        return "1 byte" if count == 1 else f"{count:.0f} bytes"
    power = next((power for power in (1, 2, 3) if count < 1024 ** (power + 1)), 4)
    return f"{count / 1024**power:.1f}".removesuffix(".0") + (" KiB", " MiB", " GiB", " TiB")[power - 1]


def suggest_memory(held: float) -> str:
    """Return what a job that held so many bytes, and needed more, is to ask for: twice as much or a little more.

    It is whole GiB, or a multiple of 64 MiB where that is less than one: "192MiB".
    """
    mebibytes = 64 * math.ceil(2 * held / (64 << 20))
    return f"{mebibytes}MiB" if mebibytes < 1024 else f"{math.ceil(mebibytes / 1024)}GiB"
