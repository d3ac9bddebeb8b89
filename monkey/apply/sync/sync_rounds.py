"""The rounds of a sync: look at the remote; where the branch moved, fetch, check out, plan and apply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace

from monkey.apply.sync.beat_writer import BeatPlace, BeatWriter
from monkey.apply.sync.outside_data import DataLimits
from monkey.apply.sync.sync_clone import SyncClone
from monkey.apply.sync.sync_directory import SyncMemo
from monkey.apply.sync.sync_order import SyncOrder
from monkey.apply.sync.sync_previews import BaseProject, PreviewRounds
from monkey.apply.sync.sync_project import load_sync_project
from monkey.apply.sync.sync_reasons import explain_error
from monkey.apply.sync.unattended_apply import UnattendedLimits, UnattendedResult, apply_unattended
from monkey.apply.trust.endpoints import check_endpoints, list_report_endpoints
from monkey.apply.world.project_store import locate_trusted_store
from monkey.apply.world.world import World, open_world
from monkey.errors import EndpointRefused, MonkeyError, PlanError, RemoteAway, SpecError
from monkey.plan.gone_sweeps import GoneSweep
from monkey.protocol.status.sync_beat import SyncBeat, hash_remote, read_sync_beats
from monkey.spec.project.project import Project

#: Seconds after which an unchanged commit is planned again: agents may have died, people may have changed what is.
DRIFT_SECONDS = 600.0
#: Times in a row that git may fail in the clone before that is made again.
_GIT_FAILURES = 3
#: Seconds between looks for news of sweeps, which read the store.
_POST_SECONDS = 60.0
#: Posts the news of a project's sweeps at the forge. Raises MonkeyError.
PostNews = Callable[[Project], None]


@dataclass(frozen=True)
class CommitVerdict:
    """What became of a commit: an outcome of `SYNC_OUTCOMES`, and what is wrong, or was left alone."""

    outcome: str
    problem: str = ""
    #: Whether it has to be tried again soon, though the commit is the same.
    again: bool = False


@dataclass
class SyncRounds:
    """The state of a sync between its rounds; what matters of it is in the store, too."""

    order: SyncOrder
    clone: SyncClone
    writer: BeatWriter
    host: str
    #: Is told what happens, in sentences.
    say: Callable[[str], None]
    beat: SyncBeat
    #: Whether to end before the next sweep.
    stopping: Callable[[], bool] = bool
    #: Within it a signal may interrupt what is done.
    resting: Callable[[], AbstractContextManager[None]] = nullcontext
    #: None where pull requests are not previewed.
    previews: PreviewRounds | None = None
    #: None where sweeps' ends are not posted.
    post: PostNews | None = None
    #: When news are looked for next (time.monotonic), and why they could not be posted last.
    _post_again: float = 0.0
    _post_problem: str = ""
    #: What the branch's monkey.yaml says, as it was accepted last.
    _base: BaseProject | None = None
    #: The commit that was tried last, what became of it, and when to try it again (time.monotonic).
    _tried: str = ""
    _verdict: CommitVerdict = field(default_factory=lambda: CommitVerdict("started"))
    _again: float = 0.0
    _failures: int = 0
    _git_failures: int = 0

    def begin(self) -> None:
        """Recall what an earlier life of this sync applied, and where its beat goes. Raises OSError, PlanError."""
        self.clone.prepare()
        memo = self.clone.directory.read_memo()
        self.beat = replace(self.beat, applied=memo.applied, applied_at=memo.applied_at)
        self._direct(memo.store, memo.project)

    def run_round(self) -> bool:
        """Look once, and apply what is new. Returns whether all is well."""
        try:
            with self.resting():
                head = self.clone.look()
        except RemoteAway as exc:
            return self._note(CommitVerdict("away", exc.message))
        self.beat = replace(self.beat, looked=time.time())
        if head is None:
            return self._note(CommitVerdict("gone", "the remote has no such branch; what was applied stays"))
        if head != self._tried or time.monotonic() >= self._again:
            self._follow(head)
        well = self._note(self._verdict)
        # All of them, whatever the others say.
        return all([well, self._preview(), self._post()])

    def _preview(self) -> bool:
        """Preview pull requests, if that was asked for, and the branch says within which limits."""
        if self.previews is None or self._base is None or self.stopping():
            return True
        well = self.previews.run_round(self._base)
        self.beat = replace(self.beat, previews=self.previews.text)
        self.writer.show(self.beat)
        return well

    def _post(self) -> bool:
        """Post news of sweeps, if that was asked for and a minute has passed. Returns whether that went well."""
        if self.post is None or self._base is None or self.stopping() or time.monotonic() < self._post_again:
            return True
        self._post_again = time.monotonic() + max(_POST_SECONDS, self.order.interval)
        problem = ""
        try:
            with self.resting():
                self.post(self._base.project)
        except (MonkeyError, OSError) as exc:
            problem = f"news are not posted: {explain_error(exc)}"
        if problem and problem != self._post_problem:
            self.say(problem)
        self._post_problem = problem
        return not problem

    def _follow(self, head: str) -> None:
        if head != self._tried:
            self._failures = 0
            self.beat = replace(self.beat, seen=head)
            self._note(CommitVerdict("applying"))
        self._tried = head
        self._verdict = self._try(head)
        well = self._verdict.outcome == "applied" and not self._verdict.again
        self._failures = 0 if well else self._failures + 1
        soon = max(self.order.interval, 1.0) * 2.0 ** min(self._failures - 1, 20)
        self._again = time.monotonic() + (DRIFT_SECONDS if well else min(soon, DRIFT_SECONDS))

    def _try(self, head: str) -> CommitVerdict:
        """Apply a commit, and return what became of it."""
        try:
            self._check_out(head)
        except (MonkeyError, OSError) as exc:
            return self._blame_git(exc)
        self._git_failures = 0
        try:
            return self._apply(head)
        except (SpecError, PlanError, EndpointRefused) as exc:
            return CommitVerdict("refused", explain_error(exc), again=True)
        except (MonkeyError, OSError) as exc:
            return CommitVerdict("failed", explain_error(exc), again=True)
        except Exception as exc:  # one commit must not end a sync that will see others
            return CommitVerdict("failed", f"this is a bug in monkey: {type(exc).__name__}: {exc}", again=True)

    def _check_out(self, head: str) -> None:
        self.clone.prepare()
        with self.resting():
            self.clone.update(head)
        self.clone.check_out(head)
        if head != self.beat.applied:
            for told in self.clone.describe_unfollowed():
                self.say(told)

    def _blame_git(self, exc: MonkeyError | OSError) -> CommitVerdict:
        """Have the clone made again where git failed in it too often: the remote has just answered."""
        self._git_failures += 1
        if self._git_failures % _GIT_FAILURES == 0:
            self.say(f"git failed {_GIT_FAILURES} times: the clone is made again")
            with suppress(OSError):
                self.clone.directory.forget_tree()
        return CommitVerdict("away" if isinstance(exc, RemoteAway) else "failed", explain_error(exc), again=True)

    def _apply(self, head: str) -> CommitVerdict:
        project = load_sync_project(self.order, self.clone.tree)
        # The branch that is followed is the one that specs are merged into.
        project = replace(project, git_branch=project.git_branch or self.order.branch)
        store = locate_trusted_store(project)
        check_endpoints(project, list_report_endpoints(project))
        self._direct(store, project.name)

        async def inside() -> CommitVerdict:
            async with open_world(project, unattended=True) as world:
                return await self._apply_in(world, head)

        return asyncio.run(inside())

    def _direct(self, store: str, project: str) -> None:
        """Have beats go there: until a commit says where, to the place of the last one that did."""
        if store and project:
            self.writer.place = BeatPlace(store, project, self.clone.tree / self.order.path, self.host)

    async def _apply_in(self, world: World, head: str) -> CommitVerdict:
        await self._recall_applied(world)
        if (why := self._find_rewrite(head)) is not None:
            return CommitVerdict("rewritten", why, again=True)
        self._base = BaseProject(world.project, head)
        branch = self.order.branch if self.order.rewrite else None
        data = DataLimits(self.clone.tree, self.order.data, self.clone.list_links())
        limits = UnattendedLimits(branch, data, self.order.prune)
        result = await apply_unattended(world, self._say_step, self.stopping, limits)
        if not result.whole:
            return CommitVerdict("failed", "it was stopped before all sweeps were applied", again=True)
        self._remember(world, head, self.writer.place)
        return _judge(result)

    async def _recall_applied(self, world: World) -> None:
        """Find out which commit was applied last: by this sync, as the store knows; else by another of this branch."""
        if world.store is None:
            return
        beats, _ = await read_sync_beats(world.store, world.keys, hash_remote(self.beat.remote, self.beat.branch))
        known = [self.beat, *beats]
        own = [beat for beat in known if beat.host == self.beat.host and beat.applied]
        last = max(own or known, key=lambda beat: beat.applied_at)
        self.beat = replace(self.beat, applied=last.applied, applied_at=last.applied_at)

    def _find_rewrite(self, head: str) -> str | None:
        """Return why this commit may not follow the one that was applied last; None where it may."""
        applied = self.beat.applied
        if not applied or self.order.rewrite or self.clone.descends(head, applied):
            return None
        if self.clone.descends(applied, head):
            return f"it is older than {applied[:10]}, which was applied; `--rewrite follow` goes back to it"
        return f"its history does not contain {applied[:10]}, which was applied; `--rewrite follow` follows it"

    def _remember(self, world: World, head: str, place: BeatPlace | None) -> None:
        if head != self.beat.applied:
            self.beat = replace(self.beat, applied=head, applied_at=time.time())
        assert place is not None
        memo = SyncMemo(place.store, world.project.name, self.beat.applied, self.beat.applied_at)
        if memo != self.clone.directory.read_memo():
            self.clone.directory.write_memo(memo)

    def _say_step(self, what: str, done: str) -> None:
        self.say(f"{what}: {done}")

    def _note(self, verdict: CommitVerdict) -> bool:
        """Show what became of the newest look, and say it where it is news. Returns whether all is well."""
        if (verdict.outcome, verdict.problem) != (self.beat.outcome, self.beat.problem):
            self.beat = replace(self.beat, outcome=verdict.outcome, problem=verdict.problem, since=time.time())
            commit = f" {self.beat.seen[:10]}" if verdict.outcome not in ("gone", "away") else ""
            self.say(f"{self.beat.branch}{commit} {verdict.outcome}{f': {verdict.problem}' if verdict.problem else ''}")
        self.writer.show(self.beat)
        return verdict.outcome == "applied" and not verdict.again


def _judge(result: UnattendedResult) -> CommitVerdict:
    told = [f"sweep {name}: {one.why}" for name, one in sorted(result.held.items())]
    told += [f"sweep {gone.name} continues, though its spec is gone: {_explain_kept(gone)}" for gone in result.gone]
    wrong = not all(one.decided for one in result.held.values())
    return CommitVerdict("refused" if wrong else "applied", "; ".join(told), again=wrong)


def _explain_kept(gone: GoneSweep) -> str:
    return f"{gone.kept}; `monkey cancel` ends it" if gone.kept else "--prune cancels it"
