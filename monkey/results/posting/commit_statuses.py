"""Statuses of commits, one for each sweep: how far it is, how it ended, or what took its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from monkey.forge.forge_port import CommitStatus, Forge, StatusState
from monkey.protocol.notices.sweep_notices import find_final_jobs
from monkey.protocol.notices.sweep_outcome import SweepOutcome, SweepVerdict, count_jobs
from monkey.protocol.status.store_snapshot import SweepView
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.results.posting.sweep_commits import CommitPulls, list_commits, list_targets, read_commit

#: Commits before the newest that are looked at: those of pushes in quick succession.
_MAX_EARLIER = 20
#: Returns the commits between an older and a newer one that change one of these paths.
FindBetween = Callable[[str, str, Iterable[str]], list[str]]
_STATES: dict[SweepVerdict, StatusState] = {
    SweepVerdict.WORKING: "pending",
    SweepVerdict.PAUSED: "pending",
    SweepVerdict.FINISHED: "success",
    SweepVerdict.FAILED: "failure",
    SweepVerdict.STALLED: "failure",
    SweepVerdict.CANCELLED: "failure",
}


def name_context(sweep: str, git: Mapping[str, Any]) -> str:
    """Return the name under which a sweep's status stands at a commit: each project of a repository has its own."""
    directory = str(git.get("directory") or "")
    return f"monkey/{sweep}/{directory}" if directory else f"monkey/{sweep}"


def find_no_commits(older: str, newer: str, paths: Iterable[str]) -> list[str]:
    """Return no commits: nothing is known of what was pushed in between."""
    return []


def set_sweep_statuses(
    forge: Forge,
    pulls: CommitPulls,
    view: SweepView,
    outcome: SweepOutcome,
    revisions: Sequence[NumberedRevision],
    find_between: FindBetween = find_no_commits,
) -> None:
    """Set a sweep's status at the commit of its newest revision, at its pull request's head, and at those before.

    What stands there already is not sent again. Raises ForgeError.
    """
    commits = list_commits(view.state)
    if not commits:
        return
    targets = list_targets(pulls, commits)
    # First, since it is only looked for while the newest has no status.
    _close_between(forge, view, revisions, commits[-1], find_between)
    for commit, git in targets.items():
        text = outcome.text + (" (and changes that are in no commit)" if git.get("dirty") else "")
        forge.set_status(commit, name_context(view.state.name, git), _STATES[outcome.verdict], text, _run(git))
    _close_earlier(forge, pulls, view, revisions, set(targets), str(commits[-1]["commit"]))


def _close_between(
    forge: Forge,
    view: SweepView,
    revisions: Sequence[NumberedRevision],
    git: Mapping[str, Any],
    find_between: FindBetween,
) -> None:
    """Say of commits that were never applied that a later one was."""
    revision, context, newest = view.state.revision, name_context(view.state.name, git), str(git["commit"])
    known = [str(of["commit"]) for each in revisions if (of := read_commit(each.revision)) is not None]
    before = next((commit for commit in reversed(known) if commit != newest), None)
    if revision is None or before is None or forge.read_status(newest, context) is not None:
        return
    for commit in find_between(before, newest, [revision.source, *revision.code_files]):
        if commit not in known and forge.read_status(commit, context) is None:
            forge.set_status(commit, context, "failure", f"superseded by {newest[:10]}")


def _close_earlier(
    forge: Forge,
    pulls: CommitPulls,
    view: SweepView,
    revisions: Sequence[NumberedRevision],
    done: set[str],
    newest: str,
) -> None:
    """End the statuses of commits whose revision was replaced, back to one that has an end already."""
    looked, later, then = 0, newest, newest
    for each in reversed(revisions):
        git = read_commit(each.revision)
        if git is None:
            continue
        if git["commit"] != then:  # what replaced a revision is the next of another commit
            later, then = then, str(git["commit"])
        if git["commit"] in done or each.number >= view.state.revision_at:
            continue
        context = name_context(view.state.name, git)
        known = forge.read_status(str(git["commit"]), context)
        looked += 1
        if looked > _MAX_EARLIER or (known is not None and known.state != "pending"):
            return
        last = _judge_replaced(view.with_revision(each.revision), later)
        for commit in list_targets(pulls, [git]):
            if commit not in done:
                forge.set_status(commit, context, last.state, last.text, _run(git))
                done.add(commit)


def _judge_replaced(view: SweepView, later: str) -> CommitStatus:
    """Return the last status of a revision that was replaced: its end, or what took its place before that."""
    finals = find_final_jobs(view)
    if finals is None:
        return CommitStatus("failure", f"superseded by {later[:10]} at {count_jobs(view.counts)}")
    failed = any(verdict == "failed" for verdict, _ in finals.values())
    return CommitStatus("failure" if failed else "success", count_jobs(view.counts))


def _run(git: Mapping[str, Any]) -> str:
    url = str(git.get("run") or "")
    return url if url.startswith(("https://", "http://")) else ""
