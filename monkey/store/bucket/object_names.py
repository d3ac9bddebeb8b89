"""Keys as names of objects, and back.

A name is the key, but for characters that the bucket cannot hold, and '%', which begins their stand-in.
"""

from __future__ import annotations

import re
from itertools import takewhile
from urllib.parse import unquote

from monkey.store.keys import check_key


class ObjectNames:
    """The names in buckets of one scheme."""

    def __init__(self, scheme: str) -> None:
        """Know what the scheme's buckets cannot hold: XML carries no control characters, Azure takes '\\' for '/'."""
        self._special = re.compile(r"[\x00-\x1f\x7f%\\]" if scheme == "az" else r"[\x00-\x1f\x7f%]")
        #: Whether names sort like keys, as far as `bound` needs it; and Azure could not begin a listing later anyway.
        self._sorted = scheme != "az"

    def of(self, key: str) -> str:
        """Return the name of `key`; raises ValueError where it is no key."""
        return self.part(check_key(key))

    def part(self, text: str) -> str:
        """Return what stands for a part of a key in its name."""
        return self._special.sub(lambda found: f"%{ord(found[0]):02X}", text)

    def bound(self, after: str) -> str | None:
        """Return a name that sorts before those of all keys that sort after `after`; None: there is none.

        Not the nearest one: the stand-ins sort as '%' does, which is after what they stand for, and a name has no
        empty parts.
        """
        if not self._sorted:
            return None
        special = self._special.search(after)
        plain = after[: special.start()] if special else after
        return "/".join(takewhile(lambda part: part not in ("", ".", ".."), plain.split("/"))) or None


def key_of(name: str) -> str:
    """Return the key that has this name."""
    return unquote(name) if "%" in name else name
