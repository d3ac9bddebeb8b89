"""Names that some disks take for one: those of Macs tell neither upper from lower case, nor Unicode forms.

The names alone say what may be one. The disk is asked whether it is.
"""

from __future__ import annotations

import os
import secrets
import stat
import unicodedata
from collections.abc import Iterable, Iterator

from monkey.errors import OneName
from monkey.removal import remove_file, remove_tree
from monkey.untrusted_files import hold_below


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
    aside = f".{secrets.token_hex(8)}.names"
    with hold_below(directory, "") as root:
        os.mkdir(aside, stat.S_IRWXU, dir_fd=root)
        try:
            with hold_below(directory, aside) as empty:
                for one, other in pairs:
                    if _is_one(_last(one), _last(other), empty):
                        raise OneName(one, other, directory)
        finally:
            remove_tree(aside, root)


def _is_one(name: str, other: str, empty: int) -> bool:
    """Tell whether a file `name` in this empty directory is found as `other`; the directory is empty again then."""
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=empty))
    try:
        os.stat(other, dir_fd=empty, follow_symlinks=False)
    except FileNotFoundError:
        return False
    else:
        return True
    finally:
        remove_file(name, empty)


def _last(path: str) -> str:
    return path.rpartition("/")[2]
