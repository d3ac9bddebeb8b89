"""Commands of earlier recipes, compared with today's: are they the same, but for parameters renamed or added since?"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

#: Braces that stand for themselves, and a parameter's place.
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_FLAG = re.compile(r"(--?)([\w.-]+)(=.*)?", re.DOTALL)


def is_same_command(
    before: str | list[str], now: str | list[str], renamed: Mapping[str, str], added: Collection[str]
) -> bool:
    """Is `now` the command `before`, with parameters `renamed` (old to new name) and others `added`?

    A flag of a renamed parameter (`--lr {lr}`) may have been renamed with it, and may be spelled with `-` for `_`.
    """
    if not renamed and not added:
        return before == now
    if isinstance(before, str) is not isinstance(now, str):
        return False
    today = _remove_places(now.split() if isinstance(now, str) else now, added)
    words = [_rename_places(word, renamed) for word in (before.split() if isinstance(before, str) else before)]
    dashed = {old: new.replace("_", "-") for old, new in renamed.items()}
    return today in (words, _rename_flags(words, renamed), _rename_flags(words, dashed))


def _rename_places(word: str, renamed: Mapping[str, str]) -> str:
    return _HOLE.sub(lambda match: f"{{{renamed[match[1]]}}}" if match[1] in renamed else match[0], word)


def _rename_flags(words: Sequence[str], renamed: Mapping[str, str]) -> list[str]:
    names = {**renamed, **{old.replace("_", "-"): new for old, new in renamed.items()}}
    found = []
    for word in words:
        flag = _FLAG.fullmatch(word)
        found.append(f"{flag[1]}{names[flag[2]]}{flag[3] or ''}" if flag and flag[2] in names else word)
    return found


def _remove_places(words: Sequence[str], names: Collection[str]) -> list[str]:
    """Remove the words that pass one of these parameters, each with the flag before it: `--lr={lr}`, `--lr {lr}`."""
    kept: list[str] = []
    for word in words:
        holes = [match[1] for match in _HOLE.finditer(word) if match[1] is not None]
        if len(holes) != 1 or holes[0] not in names:
            kept.append(word)
        elif word == f"{{{holes[0]}}}" and kept and _is_open_flag(kept[-1]):
            kept.pop()
    return kept


def _is_open_flag(word: str) -> bool:
    flag = _FLAG.fullmatch(word)
    return flag is not None and flag[3] is None
