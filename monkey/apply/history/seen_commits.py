"""Commits that want just what is applied: a small entry notes the newest, and what comes later compares with that."""

from __future__ import annotations

from monkey.apply.history.authorship import stamp_entry
from monkey.apply.history.spec_places import SpecHistory
from monkey.apply.planning import PlanningResult
from monkey.apply.world.world import World
from monkey.plan.change import SweepPlan
from monkey.plan.commits.place import CommitPlace
from monkey.plan.commits.seen_commit import SeenCommit
from monkey.protocol.sweeps.sweep_log import append_seen


async def record_seen_commits(world: World, planned: PlanningResult) -> None:
    """Note the commit in the log of each sweep that it leaves as it is, unless an entry says so. Raises StoreError.

    Commits that do not touch spec or code are not noted, nor those that a laptop alone has and may rewrite. A sweep
    whose log has grown meanwhile is left alone.
    """
    history: SpecHistory | None = None
    for want in planned.wanted:
        sweep = next(each for each in planned.plan.sweeps if each.name == want.desired.name)
        git, view = want.desired.git, planned.snapshot.sweeps.get(sweep.name) if planned.snapshot else None
        if git is None or view is None or not _stands_for_another(sweep):
            continue
        history = history or SpecHistory(world.project, git["commit"], git["branch"])
        if not _is_newer(sweep, history) or not history.may_be_seen():
            continue
        stamp = stamp_entry()
        text = "" if view.state.revision and view.state.revision.spec_text == want.text else want.text
        seen = SeenCommit(git, stamp["author"], stamp["at"], text)
        await append_seen(world.at, world.keys, world.signers, view.state, seen)


def _stands_for_another(sweep: SweepPlan) -> bool:
    """Is the sweep left as it is, and known for another commit?"""
    if sweep.revises or sweep.first or sweep.refusal is not None or sweep.observed is None:
        return False
    known, git = sweep.observed.known_git, sweep.desired.git
    return known is None or git is None or known.get("commit") != git["commit"]


def _is_newer(sweep: SweepPlan, history: SpecHistory) -> bool:
    """Return whether later commits are to be compared with this one.

    What the branch that specs are merged into wants is newer than any other branch: it wants the same, after all.
    """
    place, seen = sweep.desired.place, sweep.observed
    assert seen is not None and seen.applied is not None
    tracked = history.branch is not None and history.branch == history.tracked
    if place is CommitPlace.MERGED or (place is CommitPlace.APART and tracked):
        return True
    known = seen.known_git
    if place is not CommitPlace.AHEAD:
        return False
    if known is None or known.get("branch") != history.branch:
        # Another branch that happens to want the same: once noted, the next commit of the first would not descend.
        return known is None or tracked
    return history.has_touched(sweep.desired, seen.applied, known["commit"])
