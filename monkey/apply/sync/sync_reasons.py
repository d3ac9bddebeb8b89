"""The reasons that a sync gives in one line."""

from __future__ import annotations

from monkey.errors import EndpointRefused, MonkeyError, Problem, SpecError


def explain_error(exc: MonkeyError | OSError) -> str:
    """Return an error as one line: with its hint, and of mistakes in files the first, with its place."""
    if isinstance(exc, SpecError) and exc.problems:
        more = len(exc.problems) - 1
        return _explain(exc.problems[0]) + (f" (and {more} more)" if more else "")
    if isinstance(exc, EndpointRefused) and exc.problem is not None:
        return _explain(exc.problem)
    if not isinstance(exc, MonkeyError):
        return _join(str(exc))
    return _join(f"{exc.message}; {exc.hint}" if exc.hint else exc.message)


def _explain(problem: Problem) -> str:
    """Return a mistake without the line of the file, whose caret would point nowhere."""
    hint = f"; {problem.hint}" if problem.hint else ""
    return f"{problem.file}:{problem.line}:{problem.column}: {problem.message}{hint}"


def _join(text: str) -> str:
    return " ".join(text.split())
