"""Which strings may be keys."""

from __future__ import annotations

#: Parts that a file system takes for something else than a name.
_NOT_NAMES = frozenset(("", ".", ".."))

#: The first part that stores keep for themselves (half-written files, on a directory).
RESERVED = "tmp"


#: Characters of a key that a message shows.
_SHOWN = 160


def check_key(key: str) -> str:
    """Return `key`; raises ValueError where it is none: see `monkey.store.store_port`."""
    parts = key.split("/")
    if not _NOT_NAMES.isdisjoint(parts) or "\0" in key or parts[0] == RESERVED or not is_encodable(key):
        raise ValueError(
            f"{key!r} is not a key: expected parts joined by '/', none of them empty, '.' or '..', "
            f"without NUL, in UTF-8, and the first not {RESERVED!r}"
        )
    return key


def shorten_key(name: str) -> str:
    """Return a key or a path as messages name it: the beginning and the end of a very long one."""
    return name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}"


def check_prefix(prefix: str) -> str:
    """Return the part of `prefix` that names a whole directory ('' for none); raises ValueError as `check_key`."""
    directory = prefix.rpartition("/")[0]
    if directory or prefix.startswith("/"):
        check_key(directory)
    return directory


def is_encodable(text: str) -> bool:
    """Tell whether `text` is UTF-8 (a foreign file name need not be)."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
