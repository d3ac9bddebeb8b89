"""Which paths a list of globs names: `*`, `?`, `[…]` within one part, `**` over any number of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from unicodedata import normalize


class GlobPatterns:
    """Patterns relative to one root, '/'-separated; one that names a directory names all that is below it."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Take the patterns; raises ValueError for one that is empty or leads out of the root."""
        # "**" at the end: whatever is below. One form of Unicode: a disk may return another than was written.
        self._patterns = {each: [*map(_matcher, normalize("NFC", _clean(each)).split("/")), None] for each in patterns}

    def match(self, path: str) -> bool:
        """Tell whether any pattern names `path`."""
        parts = normalize("NFC", path).split("/")
        return any(_match(pattern, parts) for pattern in self._patterns.values())

    def reaches(self, directory: str) -> bool:
        """Tell whether any pattern may name something below `directory`."""
        parts = normalize("NFC", directory).split("/")
        heads = [pattern[: min(pattern.index(None), len(parts))] for pattern in self._patterns.values()]
        return any(_match([*head, None], parts) for head in heads)

    def idle(self, paths: Iterable[str]) -> list[str]:
        """Return the patterns that name none of `paths`."""
        split = [normalize("NFC", path).split("/") for path in paths]
        return [text for text, pattern in self._patterns.items() if not any(_match(pattern, parts) for parts in split)]


#: Tells whether one part of a path fits; None for "**".
Matcher = Callable[[str], object] | None


def _match(pattern: Sequence[Matcher], parts: Sequence[str]) -> bool:
    """Match in steps of at most len(pattern) * len(parts): after a "**", the first fit is as good as any later one."""
    at = here = 0
    star, mark = -1, 0
    while here < len(parts):
        if at < len(pattern) and (matcher := pattern[at]) is None:
            star, mark = at, here
            at += 1
        elif at < len(pattern) and matcher is not None and matcher(parts[here]):
            at += 1
            here += 1
        elif star >= 0:
            mark += 1
            at, here = star + 1, mark
        else:
            return False
    return all(matcher is None for matcher in pattern[at:])


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


@cache
def _matcher(part: str) -> Matcher:
    """Return what matches one part of a pattern."""
    if part == "**":
        return None
    try:
        expression = re.compile(_translate(part), re.DOTALL)
    except re.error as exc:
        raise ValueError(f"expected a pattern, found {part!r} ({exc.msg})") from exc
    return cache(lambda name: expression.fullmatch(name) is not None)


def _translate(part: str) -> str:
    """Return the regular expression of what stands between two slashes."""
    out, at = [""], 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            out.append("")
        elif char == "?":
            out[-1] += "."
        elif char == "[" and (end := part.find("]", at + 1 + (part[at : at + 1] == "!"))) > 0:
            out[-1] += _class(part[at:end])
            at = end + 1
        else:
            out[-1] += re.escape(char)
    if len(out) == 1:
        return out[0]
    # Between two stars the first fit is as good as any: atomic groups, or "*a*a*a…" takes for ever.
    return out[0] + "".join(f"(?>.*?{fixed})" for fixed in out[1:-1] if fixed) + ".*" + out[-1]


def _class(body: str) -> str:
    negated = body.startswith("!")
    inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", body[negated:])
    return f"[{'^' if negated else ''}{inner}]"
