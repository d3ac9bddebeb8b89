"""Code that `equivalences` declares to be no change: which earlier code is meant, and whether that may be believed.

"Today's code is a pure refactor of that code" was declared of the code of that day. A spec keeps the line when the
code changes again, though no author has declared it of the new code. So a declaration holds for the code that it was
first used with, and the plan names the way to continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import ObservedProject
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.recipe import EarlierRecipe

#: Hex digits of a hash in a sentence, and how many hashes one lists.
_SHOWN, _LISTED = 8, 3


class DeclaredCode(NamedTuple):
    """Earlier code to the item that declares it to be the same as today's, and what is wrong with other items."""

    items: dict[str, Equivalence]
    problems: dict[int, str]


def resolve_declared_code(want: DesiredSweep, observed: ObservedProject) -> DeclaredCode:
    """Return the code that the spec's `equivalences` name; problems are by the line of their item."""
    found, today = DeclaredCode({}, {}), want.recipe.code
    for item in want.equivalences:
        if not item.code:
            continue
        codes, problem = _find_codes(item.code, observed.recipes)
        if codes == {today}:
            problem = f"{item.code} is today's code itself: name the code before it"
        for code in sorted(codes - {today}):
            later = sorted(after for before, after in observed.codes if before == code)
            if not later or today in later:
                found.items.setdefault(code, item)
            else:
                problem = (
                    f"{shorten_hash(code)} was declared to be the same as {shorten_hash(later[-1])}, and the code has "
                    f'changed since: if results are still the same, add {{code: "{shorten_hash(later[-1])}"}}'
                )
        if problem and item not in found.items.values():
            found.problems[item.line] = problem
    return found


def shorten_hash(code: str) -> str:
    """Return as much of a hash as a sentence shows, and as `equivalences` may name it."""
    return code[:_SHOWN]


def _find_codes(text: str, recipes: Sequence[EarlierRecipe]) -> tuple[set[str], str]:
    """Return the code that a hash names, several if sweeps of one commit have different code; or what is wrong."""
    codes = {one.recipe.code for one in recipes if one.recipe.code.startswith(text)}
    if len(codes) > 1:
        return set(), f"{text} is the beginning of {len(codes)} codes ({_join_hashes(sorted(codes))}): give more of it"
    commits = {one.commit for one in recipes if one.commit.startswith(text)}
    if codes or not commits:
        return codes, "" if codes else f"no revision has {text} as its code or commit; there is {_list_there(recipes)}"
    if len(commits) > 1:
        return set(), f"{text} is the beginning of {len(commits)} commits: give more of it"
    here = [one for one in recipes if one.commit in commits]
    clean = {one.recipe.code for one in here if not one.dirty}
    dirty = _join_hashes(dict.fromkeys(one.recipe.code for one in reversed(here)))
    return clean, "" if clean else f"commit {text} was applied with changes on top: name the code instead, {dirty}"


def _join_hashes(hashes: Sequence[str] | dict[str, None]) -> str:
    return ", ".join(map(shorten_hash, list(hashes)[:_LISTED])) + (" …" if len(hashes) > _LISTED else "")


def _list_there(recipes: Sequence[EarlierRecipe]) -> str:
    """Name the newest code of the project's sweeps."""
    there: dict[str, str] = {}
    for one in reversed(recipes):
        if one.recipe.code:
            commit = f", commit {shorten_hash(one.commit)}" if one.commit else ""
            there.setdefault(one.recipe.code, f"{shorten_hash(one.recipe.code)} ({one.sweep}{commit})")
    some = list(there.values())
    return "; ".join(some[:_LISTED]) + (" …" if len(some) > _LISTED else "") if some else "none yet"
