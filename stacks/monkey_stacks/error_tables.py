"""What Pulumi and clouds say, in our words: by a table of each one's own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from monkey.errors import FleetError

#: How they say something; what that means, and what to do.
Word = tuple[re.Pattern[str], str, str]


def make_row(pattern: str, message: str, hint: str) -> Word:
    """Return a line of such a table."""
    return re.compile(pattern, re.I), message, hint


def find_translation(text: str, table: Iterable[Word]) -> FleetError | None:
    """Return the error for what was said: by the first line that is found in it; None where none is."""
    for pattern, message, hint in table:
        found = pattern.search(text)
        if found:
            return FleetError(f"{message}: {_line(text, found.start())}", hint=hint)
    return None


def strip_error_words(line: str) -> str:
    """Return a line without what only says that it is an error's."""
    return re.sub(r"^(?:[\s*]|stderr:|stdout:|error:)+", "", line).strip()


def _line(text: str, at: int) -> str:
    """Return the line around a place."""
    line = strip_error_words(text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0])
    return line if len(line) <= 600 else f"{line[:600]}…"
