"""Words for what is left out of a log that is larger than its limit: a line where it was."""

from __future__ import annotations

from monkey.plan.sizes import format_size

#: Bytes that are left out of a log at least: the words take the place of the last of them.
LEAST_LEFT_OUT = 1024


def describe_left_out(count: int, limit: int) -> bytes:
    """Return the line for `count` bytes of a log that may have `limit` bytes; first it ends the line before."""
    size, most = format_size(count), format_size(limit)
    return f"\n… {size} ({count:,} bytes) of this log were left out here (log_limit: {most}) …\n".encode()
