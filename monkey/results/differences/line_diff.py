"""Two texts line by line, as a unified diff: of bounded size, and in bounded time whatever the texts are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

#: Bytes of the largest text that is compared line by line.
MAX_TEXT_BYTES = 1 << 20
#: Unchanged lines that are shown around changed ones.
_CONTEXT = 3
#: Pairs of equal lines that are looked at before it is given up: about a second.
_MAX_WORK = 5_000_000
#: Bytes at the beginning in which a NUL tells that they are no text, as git has it.
_LOOKED_AT = 8_000

_LINES = re.compile(rb"[^\n]*\n|[^\n]+").findall


class TooDifferent(Exception):
    """Two texts have so many equal lines in other places that comparing them would take too long."""


def is_text(data: bytes) -> bool:
    """Tell whether bytes are shown as lines."""
    return b"\0" not in data[:_LOOKED_AT]


def compare_lines(before: bytes, after: bytes) -> list[str]:
    """Return the hunks of a unified diff as lines, without its head; [] for equal texts. Raises TooDifferent.

    Only "\\n" ends a line; bytes that are no UTF-8 become "\N{REPLACEMENT CHARACTER}".
    """
    old, new = _LINES(before), _LINES(after)
    lines: list[str] = []
    for group in _Matcher(old, new).get_grouped_opcodes(_CONTEXT) if old != new else ():
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_format_range(first[1], last[2])} +{_format_range(first[3], last[4])} @@")
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += _mark_lines(" ", old[i1:i2])
            else:
                lines += (*_mark_lines("-", old[i1:i2]), *_mark_lines("+", new[j1:j2]))
    return lines


class _Matcher(SequenceMatcher[bytes]):
    """A matcher that gives up: difflib's worst case takes hours for a chosen megabyte."""

    a: Sequence[bytes]
    b2j: Mapping[bytes, Sequence[int]]

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        super().__init__(None, old, new)
        #: Work that the lines of `old` up to each one make.
        self._costs = [0, *accumulate(1 + len(self.b2j.get(line, ())) for line in old)]
        self._left = _MAX_WORK

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None):  # type: ignore[no-untyped-def]  # difflib's type is private
        self._left -= self._costs[len(self.a) if ahi is None else ahi] - self._costs[alo]
        if self._left < 0:
            raise TooDifferent
        return super().find_longest_match(alo, ahi, blo, bhi)


def _mark_lines(sign: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        yield sign + line.removesuffix(b"\n").decode(errors="replace")
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file"


def _format_range(start: int, stop: int) -> str:
    """Return a range of lines as unified diffs have it: one that is empty is named by the line before."""
    count = stop - start
    return f"{start + 1 if count else start}" + ("" if count == 1 else f",{count}")
