"""Texts cut for a narrow place, of which two that differ never look the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def measure_width(text: str) -> int:
    """Return how many columns the text takes: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(0 if category(c) in ("Mn", "Me", "Cf") else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut_text(text: str, width: int) -> str:
    """Return the text in at most `width` columns, its loss shown by '…'."""
    if measure_width(text) <= width:
        return text
    return _keep_start(text, width - 1) + "…"


def shorten_texts(texts: Iterable[str], width: int) -> dict[str, str]:
    """Return each text with its short form, of at most `width` columns where that tells it from all others.

    Texts that would look alike lose what they have in common, as little of it as that takes. Names of models differ at
    their ends, paths and lists anywhere.
    """
    short = {text: cut_text(text, width) for text in texts}
    room = width
    while alike := _group_alike(short):
        for group in alike:
            at = _find_difference(min(group), max(group))
            short |= {text: _cut_around(text, at, room) for text in group if short[text] != text}
        room += max(room // 4, 1)
    return short


def shorten_column(cells: Sequence[str], width: int, least: int | None = None) -> Sequence[str]:
    """Return the cells of a column as `shorten_texts` does.

    `least`: a smaller width, to begin with if texts that are alike would take more than `width`.
    """
    short = shorten_texts(cells, width)
    if least is not None and any(measure_width(text) > width for text in short.values()):
        short = shorten_texts(cells, least)
    return [short[cell] for cell in cells]


def _group_alike(short: dict[str, str]) -> list[list[str]]:
    """Return the texts of which the same is left, two or more each."""
    if len(set(short.values())) == len(short):
        return []
    groups: dict[str, list[str]] = {}
    for text, left in short.items():
        groups.setdefault(left, []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def _find_difference(one: str, other: str) -> int:
    """Return where two texts begin to differ."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _cut_around(text: str, at: int, width: int) -> str:
    """Return the text's beginning and its end, and what stands `at` a place, in `width` columns."""
    if measure_width(text) <= width:
        return text
    after = (width - 1) // 2
    start, end = _keep_start(text, width - 1 - after), _keep_end(text, after)
    if at < len(start) or at >= len(text) - len(end):
        return f"{start}…{end}"
    part = max((width - 2) // 3, 1)
    start, end = _keep_start(text, width - 2 - 2 * part), _keep_end(text, part)
    there = text[max(at - part // 2, len(start)) : len(text) - len(end)]
    return f"{start}…{_keep_start(there, part)}…{end}"


def _keep_end(text: str, width: int) -> str:
    return _keep_start(text[::-1], width)[::-1]


def _keep_start(text: str, width: int) -> str:
    """Return as much of the text's beginning as `width` columns hold."""
    if text.isascii():
        return text[: max(width, 0)]
    kept, used = [], 0
    for c in text:
        used += measure_width(c)
        if used > width:
            break
        kept.append(c)
    return "".join(kept)
