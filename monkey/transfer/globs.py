"""Which paths a list of globs names: `*`, `?`, `[…]` within one part, `**` over any number of them."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Globs:
    """Patterns relative to one root, '/'-separated; one that names a directory names all that is below it."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Take the patterns; raises ValueError for one that is empty or leads out of the root."""
        self._expressions = {pattern: re.compile(_translate(_clean(pattern))) for pattern in patterns}

    def match(self, path: str) -> bool:
        """Tell whether any pattern names `path`."""
        return any(expression.fullmatch(path) for expression in self._expressions.values())

    def idle(self, paths: Iterable[str]) -> list[str]:
        """Return the patterns that name none of `paths`."""
        paths = list(paths)
        return [p for p, expression in self._expressions.items() if not any(map(expression.fullmatch, paths))]


def _clean(pattern: str) -> str:
    parts = [part for part in pattern.split("/") if part != "."]
    if pattern.startswith("/") or ".." in parts:
        raise ValueError(f"expected a pattern below the root, found {pattern!r}")
    cleaned = "/".join(part for part in parts if part)
    if pattern and not cleaned and "." in pattern:
        return "**"
    if not cleaned:
        raise ValueError("expected a pattern, found an empty one")
    return cleaned


def _translate(pattern: str) -> str:
    """Return the regular expression of `pattern`, which matches whatever is below, too."""
    out = ""
    parts = pattern.split("/")
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        if part == "**":
            out += ".*" if last else "(?:[^/]+/)*"
        else:
            out += _part(part) + ("" if last else "/")
    return f"(?s:{out}(?:/.*)?)"


def _part(part: str) -> str:
    """Return the regular expression of what stands between two slashes."""
    out, at = "", 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[" and (end := part.find("]", at + 1 + (part[at : at + 1] == "!"))) > 0:
            out += _class(part[at:end])
            at = end + 1
        else:
            out += re.escape(char)
    return out


def _class(body: str) -> str:
    negated = body.startswith("!")
    inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", body[negated:])
    return f"(?!/)[{'^' if negated else ''}{inner}]"
