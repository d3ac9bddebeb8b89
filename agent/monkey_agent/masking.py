"""Secrets in logs: each value is replaced by ***, however the log is cut into pieces."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

#: What stands in a secret's place.
STARS = b"***"
#: Characters from which on a value is masked: shorter ones stand everywhere, and are no secrets.
LEAST = 4
#: Characters of a base64 form from which on it is masked.
LEAST_ENCODED = 8


class Mask:
    """What must not be seen in one job's log."""

    def __init__(self, values: Iterable[str]) -> None:
        """Mask these values, their lines, and how they look in URLs, JSON and base64."""
        found = {form for value in values for form in _forms(value)}
        self._patterns = sorted(found, key=len, reverse=True)
        #: Bytes before and after a piece that tell whether a secret is cut by its ends.
        self.margin = max(map(len, self._patterns), default=1) - 1

    def hide(self, window: bytes, start: int = 0, end: int | None = None) -> bytes:
        """Return window[start:end] with the secrets masked. One that began before `start` has its stars there."""
        end = len(window) if end is None else end
        parts, at = [], start
        for first, last in self._spans(window):
            if last <= start or first >= end:
                continue
            parts.append(window[at : max(at, first)])
            parts.append(STARS if first >= start else b"")
            at = min(last, end)
        return b"".join([*parts, window[at:end]])

    def held(self, data: bytes) -> int:
        """Return how many bytes at the end may be the beginning of a secret."""
        most = 0
        for pattern in self._patterns:
            tail = data[-(len(pattern) - 1) :]
            at = tail.find(pattern[:1])
            while at >= 0 and len(tail) - at > most:
                if pattern.startswith(tail[at:]):
                    most = len(tail) - at
                at = tail.find(pattern[:1], at + 1)
        return most

    def _spans(self, window: bytes) -> list[tuple[int, int]]:
        """Return where secrets are, in order, those that overlap as one."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self._found(window)):
            if merged and first < merged[-1][1]:
                merged[-1] = merged[-1][0], max(last, merged[-1][1])
            else:
                merged.append((first, last))
        return merged

    def _found(self, window: bytes) -> Iterator[tuple[int, int]]:
        for pattern in self._patterns:
            at = window.find(pattern)
            while at >= 0:
                yield at, at + len(pattern)
                at = window.find(pattern, at + 1)


def _forms(value: str) -> set[bytes]:
    """Return all that a value may look like in a log."""
    texts = {value, *(line.strip() for line in value.splitlines())}
    texts |= {form for text in texts for form in (quote(text, safe=""), quote(text), quote_plus(text))}
    texts |= {json.dumps(text, ensure_ascii=ascii)[1:-1] for text in list(texts) for ascii in (True, False)}
    forms = {text.encode(errors="surrogateescape") for text in texts if len(text) >= LEAST}
    return forms | set(_encoded(value.encode(errors="surrogateescape"))) if len(value) >= LEAST else forms


def _encoded(value: bytes) -> Iterator[bytes]:
    """Return what base64 makes of a value, wherever in the encoded text it begins: as in `user:TOKEN`."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + value)
        # Characters that also tell of what stands before or behind are no part of it.
        first = -(-before * 8 // 6)
        last = (before + len(value)) * 8 // 6
        inner = text[first:last]
        if len(inner) >= LEAST_ENCODED:
            yield inner
            yield inner.translate(bytes.maketrans(b"+/", b"-_"))
