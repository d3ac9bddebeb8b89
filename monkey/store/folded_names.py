"""Names that some disks take for one: those of Macs tell neither upper from lower case, nor Unicode forms.

The names alone say what may be one. The disk is asked whether it is.
"""

from __future__ import annotations

import os
import secrets
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from monkey.errors import OneName
from monkey.removal import remove_tree


def fold_name(name: str) -> str:
    """Return the name as disks compare it that ignore case, or characters that do not show."""
    if name.isascii():
        return name.lower()
    shown = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", shown).casefold()


def find_twins(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs that may be one name on some disk, of '/'-separated paths and of directories that they are in.

    The two of a pair are in the same directory.
    """
    known: dict[tuple[str, str], str] = {}
    for path in paths:
        while path:
            above, _, name = path.rpartition("/")
            other = known.setdefault((above, fold_name(name)), path)
            if other != path:
                yield other, path
            path = above


def check_names(paths: Iterable[str], directory: str) -> None:
    """Raise OneName for two of the paths, or directories that they are in, that are one on the disk of `directory`.

    The disk is asked only where two may be one. Raises OSError.
    """
    pairs = dict.fromkeys(find_twins(paths))
    if not pairs:
        return
    aside = Path(directory, f".{secrets.token_hex(8)}.names")
    aside.mkdir()
    try:
        for one, other in pairs:
            (aside / Path(one).name).touch()
            if os.path.lexists(aside / Path(other).name):
                raise OneName(one, other, directory)
    finally:
        remove_tree(aside)
