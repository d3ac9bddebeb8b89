"""Secrets in logs: each value is replaced by ***, however the log is cut into pieces."""

from __future__ import annotations

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

#: What stands in a secret's place.
STARS = b"***"
#: Characters from which on a value is masked: shorter ones stand everywhere, and are no secrets.
_LEAST = 4
#: Characters of a base64 form from which on it is masked.
LEAST_ENCODED = 8
#: Characters that lines of wrapped base64 have at least, and bytes between two of them at most (a break, an indent).
WRAP, BREAK = 16, 10
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


class EncodedSecret(NamedTuple):
    """What base64 makes of a value; `left`, `right`: the character beside it there tells of the value, too."""

    text: bytes
    left: bool
    right: bool

    @property
    def most(self) -> int:
        """Bytes that it may take of a log, wrapped."""
        return len(self.text) + BREAK * (len(self.text) // WRAP + 1)


class LogMask:
    """What must not be seen in one job's log."""

    def __init__(self, values: Iterable[str]) -> None:
        """Mask these values, their lines, and how they look in URLs, JSON, XML, shells and base64."""
        values = list(values)
        found = {form for value in values for form in _forms(value)}
        self._patterns = sorted(found, key=len, reverse=True)
        self._encoded = sorted({form for value in values if len(value) >= _LEAST for form in _encoded(value)})
        #: Bytes before and after a piece that tell whether a secret is cut by its ends.
        self.margin = max([0, *(len(p) - 1 for p in self._patterns), *(form.most + 1 for form in self._encoded)])

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
        most = max((_begun(pattern, data, len(pattern) - 1) for pattern in self._patterns), default=0)
        if not self._encoded:
            return most
        tail = data[-self.margin - 1 :]
        joined = JoinedText(tail)
        for form in self._encoded:
            # One that is whole waits for the character beside it.
            begun = _begun(form.text, joined.text, len(form.text) - (0 if form.right else 1))
            if begun:
                raw = len(tail) - joined.origin(len(joined.text) - begun)
                most = max(most, min(len(data), raw + form.left) if raw <= form.most else 0)
        beside = bool(data) and data[-1] in _ALPHABET and any(form.left for form in self._encoded)
        return max(most, beside)

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
        if self._encoded:
            joined = JoinedText(window)
            for form in self._encoded:
                yield from joined.find(form)


class JoinedText:
    """A text whose lines are joined, as base64 that was wrapped is read; and where each byte of it was."""

    def __init__(self, window: bytes) -> None:
        """Join the lines of `window`, without what is blank around them."""
        self._window = window
        self._starts, self._origins = [0], [0]
        parts, at, size = [], 0, 0
        for line in window.split(b"\n"):
            part = line.strip(b" \t\r")
            if part:
                self._starts.append(size)
                self._origins.append(at + len(line) - len(line.lstrip(b" \t\r")))
                parts.append(part)
                size += len(part)
            at += len(line) + 1
        self.text = b"".join(parts)

    def origin(self, at: int) -> int:
        """Return where a byte of the text was."""
        line = bisect_right(self._starts, at) - 1
        return self._origins[line] + at - self._starts[line]

    def find(self, form: EncodedSecret) -> Iterator[tuple[int, int]]:
        """Return where a form is in the window, with the characters beside it that tell of it."""
        at = self.text.find(form.text)
        while at >= 0:
            first, last = self.origin(at), self.origin(at + len(form.text) - 1) + 1
            if last - first <= form.most:
                before = form.left and first > 0 and self._window[first - 1] in _ALPHABET
                behind = form.right and last < len(self._window) and self._window[last] in _ALPHABET
                yield first - before, last + behind
            at = self.text.find(form.text, at + 1)


def _begun(pattern: bytes, data: bytes, most: int) -> int:
    """Return how many of the last bytes, `most` at most, are the beginning of a pattern."""
    tail = data[-most:]
    at = tail.find(pattern[:1])
    while at >= 0:
        if pattern.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(pattern[:1], at + 1)
    return 0


def _forms(value: str) -> set[bytes]:
    """Return all that a value may look like in a log, but in base64."""
    plain = {value, *(line.strip() for line in value.splitlines())}
    texts = plain | {form for text in plain for form in (*_in_urls(text), *_in_markup(text))}
    # JSON, and JSON as a text in JSON.
    for _ in range(2):
        texts |= {json.dumps(text, ensure_ascii=ascii)[1:-1] for text in list(texts) for ascii in (True, False)}
    return {text.encode(errors="surrogateescape") for text in texts if len(text) >= _LEAST}


def _in_urls(text: str) -> Iterator[str]:
    for form in (
        quote(text, safe="", errors="replace"),
        quote(text, errors="replace"),
        quote_plus(text, errors="replace"),
    ):
        yield form
        yield re.sub("%..", lambda match: match[0].lower(), form)
        yield quote(form)


def _in_markup(text: str) -> Iterator[str]:
    """Return what XML, HTML, shells and Python make of quotes and the like."""
    yield html.escape(text)
    yield html.escape(text, quote=False)
    yield html.escape(text, quote=False).replace('"', "&quot;").replace("'", "&apos;")
    yield text.replace("'", "'\\''")
    yield text.replace("'", "'\"'\"'")
    yield repr(text)[1:-1]


def _encoded(text: str) -> Iterator[EncodedSecret]:
    """Return what base64 makes of a value, wherever in the encoded text it begins: as in `user:TOKEN`."""
    value = text.encode(errors="surrogateescape")
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + value)
        # Characters that also tell of what stands before or behind are no part of it.
        first, last = -(-before * 8 // 6), (before + len(value)) * 8 // 6
        inner = encoded[first:last]
        if len(inner) >= LEAST_ENCODED:
            sides = before * 8 % 6 > 0, (before + len(value)) * 8 % 6 > 0
            yield EncodedSecret(inner, *sides)
            yield EncodedSecret(inner.translate(bytes.maketrans(b"+/", b"-_")), *sides)
