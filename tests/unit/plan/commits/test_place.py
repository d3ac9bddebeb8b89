"""Verdicts on facts; `tests/unit/apply/history` has the same for real repositories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.plan.commits.place import (
    AppliedCommit,
    CommitAncestry,
    CommitPlace,
    CurrentCommit,
    explain_place,
    place_commit,
)

OLD, NEW = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    "branch, now, verdict",
    [
        ("main", CurrentCommit(NEW, "main", CommitAncestry.ANCESTOR), "ahead"),
        ("main", CurrentCommit(OLD, "main", CommitAncestry.ANCESTOR), "same"),
        ("main", CurrentCommit(OLD, "main", CommitAncestry.MISSING), "same"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.DESCENDANT, "main", has_content=True), "behind"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.DESCENDANT, "main", shallow=True), "behind"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.MISSING, "main", shallow=True, has_content=True), "unknown"),
        ("main", CurrentCommit(NEW, "main", CommitAncestry.NEITHER, "main", has_content=True), "behind"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.NEITHER, "main", has_content=True), "merged"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.MISSING, "main", has_content=True), "merged"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.NEITHER, "main"), "apart"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.NEITHER, "main", partial=True), "unknown"),
        ("main", CurrentCommit(NEW, "pr", CommitAncestry.NEITHER, "main", partial=True), "apart"),
        ("pr", CurrentCommit(NEW, "main", CommitAncestry.NEITHER, None, has_content=True), "apart"),
        ("main", CurrentCommit(NEW, "pr", CommitAncestry.NEITHER, "main", has_content=True), "apart"),
        (None, CurrentCommit(NEW, "main", CommitAncestry.NEITHER, "main", has_content=True), "behind"),
        ("pr", CurrentCommit(NEW, None, CommitAncestry.NEITHER, "main", has_content=True), "behind"),
    ],
)
def test_verdicts(branch: str | None, now: CurrentCommit, verdict: str) -> None:
    applied = AppliedCommit(OLD, branch, "ann")
    place = place_commit(applied, now)
    assert place == verdict
    why = explain_place(place, applied, now)
    assert (why is not None) == (verdict in ("behind", "apart", "unknown"))
    assert why is None or ("by ann" in why.text and OLD[:10] in why.text and NEW[:10] in why.text)


def test_what_is_not_known_stops_nothing() -> None:
    now = CurrentCommit(NEW, "main", CommitAncestry.MISSING)
    assert {place_commit(None, now), place_commit(AppliedCommit(OLD), None)} == {CommitPlace.AHEAD}


def test_words_say_what_to_do() -> None:
    pr, now = AppliedCommit(OLD, "pr"), CurrentCommit(NEW, "main", CommitAncestry.NEITHER)
    why = explain_place(CommitPlace.APART, pr, now)
    assert why is not None and "of branch pr, which is not merged" in why.text
    assert why.hint.startswith("name the branch that specs are merged into: `git: {branch: main}`"), (
        "what helps is first"
    )
    why = explain_place(CommitPlace.UNKNOWN, pr, replace(now, partial=True))
    assert why is not None and "partial" in why.text and "--refetch --no-filter" in why.hint
    why = explain_place(CommitPlace.UNKNOWN, pr, replace(now, shallow=True))
    assert why is not None and "shallow" in why.text and "fetch-depth: 0" in why.hint
