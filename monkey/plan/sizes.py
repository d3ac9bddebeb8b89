"""Numbers of bytes, as people read them. By itself: what says nothing else need not import the plan."""

from __future__ import annotations


def format_size(count: float) -> str:
    """Say a number of bytes: "12.3 KiB"."""
    if count < 1024:
        return "1 byte" if count == 1 else f"{count:.0f} bytes"
    power = next((power for power in (1, 2, 3) if count < 1024 ** (power + 1)), 4)
    return f"{count / 1024**power:.1f}".removesuffix(".0") + (" KiB", " MiB", " GiB", " TiB")[power - 1]
