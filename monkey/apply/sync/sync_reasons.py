"""The reasons that a sync gives in one line."""

from __future__ import annotations

from monkey.errors import MonkeyError, SpecError


def explain_error(exc: MonkeyError | OSError) -> str:
    """Return an error as one line: of a spec's mistakes the first, with its place and its hint."""
    if isinstance(exc, SpecError) and exc.problems:
        first, more = exc.problems[0], len(exc.problems) - 1
        rest = f" (and {more} more)" if more else ""
        hint = f"; {first.hint}" if first.hint else ""
        return f"{first.file}:{first.line}:{first.column}: {first.message}{hint}{rest}"
    return " ".join((exc.message if isinstance(exc, MonkeyError) else str(exc)).split())
