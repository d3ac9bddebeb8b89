"""Keys of a store as names of objects in a bucket, and back.

A name is the key, except that '%' and the characters that the bucket cannot hold become a stand-in, such as '%25'.
"""

from __future__ import annotations

import re
from itertools import takewhile
from urllib.parse import unquote

from monkey.store.keys import check_key


class ObjectNames:
    """The names of objects in buckets of one scheme."""

    def __init__(self, scheme: str) -> None:
        """Replace what the scheme's buckets cannot hold: XML has no control characters, Azure takes '\\' for '/'."""
        self._special = re.compile(r"[\x00-\x1f\x7f%\\]" if scheme == "az" else r"[\x00-\x1f\x7f%]")
        #: Whether names sort like keys, as far as `bound` needs it. Azure cannot begin a listing at a name anyway.
        self._sorted = scheme != "az"

    def of(self, key: str) -> str:
        """Return the name of `key`. Raises ValueError where it is no key."""
        return self.part(check_key(key))

    def part(self, text: str) -> str:
        """Return the part of a name for this part of a key."""
        return self._special.sub(lambda found: f"%{ord(found[0]):02X}", text)

    def bound(self, after: str) -> str | None:
        """Return a name that sorts before the names of all keys after `after`; None where there is none.

        It is not the nearest such name. A stand-in sorts as '%' does, which is after the character that it replaces,
        and a name has no empty parts.
        """
        if not self._sorted:
            return None
        special = self._special.search(after)
        plain = after[: special.start()] if special else after
        return "/".join(takewhile(lambda part: part not in ("", ".", ".."), plain.split("/"))) or None


def decode_object_name(name: str) -> str:
    """Return the key that has this name."""
    return unquote(name) if "%" in name else name
