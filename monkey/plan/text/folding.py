"""Long lists of files in a few words: "train.py, runs/ (120 files), … and 12 more"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

#: Files and directories that are named at most.
_MAX_NAMES = 6
#: Files of a directory that are named before the directory stands for all of them.
_MAX_IN_DIRECTORY = 3


def fold_paths(paths: Iterable[str]) -> str:
    """Return the first paths, sorted; a directory stands for its files where there are many of both."""
    names = sorted(paths)
    if len(names) > _MAX_NAMES:
        names = _fold_directories(names)
    left = len(names) - _MAX_NAMES
    return ", ".join([*names[:_MAX_NAMES], *([f"… and {left:,} more"] if left > 0 else [])])


def _fold_directories(paths: list[str]) -> list[str]:
    """Return the paths, with one name for all of a top directory that has many of them."""
    tops: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        directory, slash, _ = path.partition("/")
        tops[directory + slash].append(path)
    folded: list[str] = []
    for top, below in tops.items():
        many = top.endswith("/") and len(below) > _MAX_IN_DIRECTORY
        folded += [f"{top} ({len(below):,} files)"] if many else below
    return folded
