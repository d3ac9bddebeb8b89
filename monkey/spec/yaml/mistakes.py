"""Mistakes in a file, before they have a line: found while values are read, placed by `YamlDocument`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

#: Keys and indexes from the top of a file to a node.
NodePath = tuple[str | int, ...]


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong at `path`: what was expected and found, and what to write instead (`hint`).

    `on_key` points at the key rather than its value; `offset` counts characters into a text value.
    """

    path: NodePath
    message: str
    hint: str | None = None
    on_key: bool = False
    offset: int | None = None

    def under(self, prefix: NodePath) -> Mistake:
        """Return it as seen from further up."""
        return replace(self, path=(*prefix, *self.path))


class MistakesError(ValueError):
    """Raised by whatever reads a value; a ValueError so that pydantic carries it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        """Keep them all: users see every mistake at once."""
        self.mistakes = list(mistakes)
        super().__init__("; ".join(m.message for m in self.mistakes))


def make_mistake_error(
    message: str, hint: str | None = None, path: NodePath = (), *, on_key: bool = False
) -> MistakesError:
    """Return one mistake, ready to raise."""
    return MistakesError([Mistake(path, message, hint, on_key)])


def describe_value(value: Any) -> str:
    """Name a value as its author would know it again."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {shorten_text(value)!r}"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case dict():
            return "a mapping" if value else "an empty mapping"
        case _:
            return shorten_text(repr(value))


def shorten_text(text: str, limit: int = 60) -> str:
    """Cut a text that would fill the screen."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def find_nearest_word(word: str, words: Iterable[str]) -> str | None:
    """Return the word that was probably meant, if any is near."""
    import difflib  # slow to import, and most files have no mistakes

    lower = {w.lower(): w for w in words}
    word = word.lower()[:100]
    found = difflib.get_close_matches(word, lower, n=1, cutoff=0.6)
    found = found or [w for w in lower if sorted(w) == sorted(word) or (len(word) > 1 and w.startswith(word))]
    return lower[found[0]] if found else None


def suggest_word(word: str, words: Collection[str], what: str) -> str:
    """Say what was probably meant, or else what there is."""
    if near := find_nearest_word(word, words):
        return f"did you mean {near!r}?"
    more = len(words) - 40
    listed = ", ".join(sorted(words)[:40]) + (f" and {more} more" if more > 0 else "")
    return f"{what}: {listed}" if words else f"there are no {what}"
