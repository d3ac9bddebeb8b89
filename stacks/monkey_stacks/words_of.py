"""What clouds say, in our words: by a table of each cloud's own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from monkey.errors import FleetError

#: How a cloud says something; what that means, and what to do.
Word = tuple[re.Pattern[str], str, str]


def known(pattern: str, message: str, hint: str) -> Word:
    """Return a line of such a table."""
    return re.compile(pattern, re.I), message, hint


def translated(text: str, table: Iterable[Word]) -> FleetError | None:
    """Return the error for what was said: by the first line that is found in it; None where none is."""
    for pattern, message, hint in table:
        found = pattern.search(text)
        if found:
            return FleetError(f"{message}: {_line(text, found.start())}", hint=hint)
    return None


def _line(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    line = re.sub(r"^[\s*]*(?:error:\s*)?", "", text[begin:].partition("\n")[0]).strip()
    return line if len(line) <= 600 else f"{line[:600]}…"
