"""The places of specs in git's history, seen from the commits that their sweeps were applied from last."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from monkey.apply.world.desired_state import LoadedSpec
from monkey.ci_run import is_ci, read_ci_run
from monkey.plan.commits.place import AppliedCommit, CommitAncestry, CurrentCommit, explain_place, place_commit
from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import AppliedRevision, ObservedProject, ObservedSweep
from monkey.spec.project.project import Project
from monkey.spec.sweep.sweep_names import parse_preview_name
from monkey.transfer.code.commit_history import CommitHistory, CommittedContent
from monkey.transfer.code.git_files import find_work_tree, read_default_branch

#: By how much the clocks of a forge and of a laptop may differ: a merge that is older than an apply is not its merge.
_CLOCKS = timedelta(minutes=10)


def place_specs_in_history(
    project: Project, wanted: Sequence[LoadedSpec], observed: ObservedProject
) -> list[LoadedSpec]:
    """Note where the commit of each spec stands, seen from the one that its sweep was applied from last.

    In CI, what a shallow or partial clone lacks is fetched. Outside of it, nothing is.
    """
    git = next((want.desired.git for want in wanted if want.desired.git is not None), None)
    if git is None:
        return list(wanted)
    history = SpecHistory(project, git["commit"], git["branch"])
    return [
        replace(want, desired=_placed(want.desired, observed.sweeps.get(want.desired.name), history)) for want in wanted
    ]


def _placed(desired: DesiredSweep, seen: ObservedSweep | None, history: SpecHistory) -> DesiredSweep:
    if seen is None or seen.applied is None or (applied := _find_commit(seen)) is None:
        return desired
    now = history.look_from(applied, desired, seen)
    if parse_preview_name(desired.name) is not None and now.ancestry is not CommitAncestry.DESCENDANT:
        return desired  # people rewrite the branch of a pull request; only a late run of an older commit is held back
    place = place_commit(applied, now)
    return replace(desired, place=place, misplaced=explain_place(place, applied, now))


def _find_commit(seen: ObservedSweep) -> AppliedCommit | None:
    git = seen.known_git or {}
    return AppliedCommit(git["commit"], git.get("branch"), seen.known_author) if git.get("commit") else None


class SpecHistory:
    """The history of the commit that a project's specs are read from."""

    def __init__(self, project: Project, commit: str, branch: str | None) -> None:
        """Ask git nothing yet."""
        self._project, self.commit, self.branch = project, commit, branch
        self._history = CommitHistory(project.root, commit, fetches=is_ci())
        self._tracked: tuple[str | None] | None = None

    @property
    def tracked(self) -> str | None:
        """The branch that specs are applied from: monkey.yaml names it, else CI, else the clone."""
        if self._tracked is None:
            run = read_ci_run()
            self._tracked = (
                self._project.git_branch
                or (run.default_branch if run else "")
                or read_default_branch(self._project.root)
                or None,
            )
        return self._tracked[0]

    def look_from(self, applied: AppliedCommit, desired: DesiredSweep, seen: ObservedSweep) -> CurrentCommit:
        """Return what the history says of an applied commit; more than once or twice is asked only where it must be."""
        if applied.commit == self.commit:
            return CurrentCommit(self.commit, self.branch, CommitAncestry.ANCESTOR)
        ancestry = self._history.compare(applied.commit)
        shallow = False
        if ancestry in (CommitAncestry.NEITHER, CommitAncestry.MISSING) and self._history.is_shallow():
            self._history.deepen()
            ancestry, shallow = self._history.compare(applied.commit), self._history.is_shallow()
        now = CurrentCommit(self.commit, self.branch, ancestry, shallow=shallow)
        if shallow or ancestry in (CommitAncestry.ANCESTOR, CommitAncestry.DESCENDANT):
            return now
        now = replace(now, tracked=self.tracked, has_content=self._has_content(desired, seen, applied, ancestry))
        return now if now.has_content else replace(now, partial=self._history.lacks_files())

    def _has_content(
        self, desired: DesiredSweep, seen: ObservedSweep, applied: AppliedCommit, ancestry: CommitAncestry
    ) -> bool:
        revision = seen.applied
        if revision is None or (content := self._locate(desired, revision, seen.known_spec)) is None:
            return False
        if ancestry is CommitAncestry.NEITHER:
            return self._history.has_content(content, apart_from=applied.commit)
        # Where the two parted is not known: a state from before the apply is not what was merged since.
        since = (datetime.fromisoformat(revision.at) - _CLOCKS).isoformat() if revision.at else ""
        return self._history.has_content(content, since=since)

    def _locate(self, desired: DesiredSweep, revision: AppliedRevision, text: str) -> CommittedContent | None:
        """Return the applied content by paths of the work tree; None where it does not lie in that."""
        root = self._project.root
        top = find_work_tree(root)
        if top is None or not revision.source:
            return None
        below = root.resolve().relative_to(top).as_posix()
        base = posixpath.normpath(posixpath.join(below, desired.code_root))
        spec = posixpath.normpath(posixpath.join(below, revision.source))
        if base.startswith("..") or spec.startswith(".."):
            return None
        files = {posixpath.normpath(posixpath.join(base, path)): of for path, of in revision.code_files.items()}
        return CommittedContent(spec, text, "" if base == "." else base, files)

    def has_touched(self, desired: DesiredSweep, revision: AppliedRevision, since: str) -> bool:
        """Did a commit after `since` touch the spec or its code?"""
        content = self._locate(desired, revision, revision.spec_text)
        return content is not None and self._history.has_touched(content, since)

    def may_be_seen(self) -> bool:
        """May others compare with this commit? Not with one that a laptop alone has, and may rewrite."""
        return is_ci() or self._history.is_pushed()
