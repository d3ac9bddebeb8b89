"""The previews of a sync: it runs pull requests of its branch, within the limits that the branch's monkey.yaml sets.

A pull request is hostile input. Its own monkey.yaml is never read. Its data must lie in the repository, as in CI. One
of a fork is not run: no person who may push has looked at it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from monkey.apply.agent_environment import renew_idle_agents
from monkey.apply.ci_refusals import check_datasets_inside
from monkey.apply.execute import execute_plan
from monkey.apply.previews import converge_previews, end_preview, list_previewed_pulls, plan_preview
from monkey.apply.sync.sync_clone import SyncClone
from monkey.apply.sync.sync_directory import SyncDirectory
from monkey.apply.sync.sync_order import SyncOrder
from monkey.apply.sync.sync_project import check_project_directory
from monkey.apply.sync.sync_reasons import explain_error
from monkey.apply.sync.unattended_apply import leave_fruitless_fleets
from monkey.apply.trust.endpoints import check_endpoints, list_forge_endpoints
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.world.desired_state import list_spec_files, read_specs
from monkey.apply.world.world import open_world
from monkey.errors import ForgeError, MonkeyError, PlanError, SpecError
from monkey.forge.forge_port import Forge, PullRequest
from monkey.forge.open_forge import MONKEY_TOKEN, open_project_forge
from monkey.spec.project.project import PROJECT_FILE, Project

#: Seconds between questions to the forge. For as long after a push, it is asked in each round: it may know of it late.
ASK_SECONDS = 60.0
#: Seconds after which an unchanged pull request is planned again; and at most between tries of one that failed.
DRIFT_SECONDS = 600.0
_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
#: Times in a row that git may fail in the work tree before that is made again.
_GIT_FAILURES = 3


@dataclass(frozen=True)
class BaseProject:
    """The branch's project as it was accepted last, and its commit."""

    project: Project
    commit: str


@dataclass(frozen=True)
class _Tried:
    """What became of a pull request's commit: "previewed", "refused" or "failed"."""

    commit: str
    base: str
    outcome: str
    why: str = ""
    #: When it is tried again, though nothing changed (time.monotonic), and how often it failed in a row.
    again: float = 0.0
    failures: int = 0


@dataclass
class PreviewRounds:
    """The state of a sync's previews between its rounds; what was run is in the store."""

    order: SyncOrder
    clone: SyncClone
    #: The forge's token; "" for none.
    token: str
    say: Callable[[str], None]
    stopping: Callable[[], bool] = bool
    resting: Callable[[], AbstractContextManager[None]] = nullcontext
    #: What `monkey status` says of it.
    text: str = ""
    _trees: SyncClone = field(init=False)
    _forge: Forge | None = None
    _base: BaseProject | None = None
    _heads: bytes = b""
    #: Until when the forge is asked in each round, and from when it is asked again (time.monotonic).
    _eager: float = 0.0
    _ask: float = 0.0
    _failures: int = 0
    _git_failures: int = 0
    _pulls: list[PullRequest] = field(default_factory=list)
    #: The pull requests that were open when those that are closed were looked for, and when to look again.
    _known: frozenset[int] = frozenset()
    _look: float = 0.0
    _tried: dict[int, _Tried] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Name the work tree in which pull requests are checked out, one after the other."""
        own = self.clone.directory
        directory = SyncDirectory(own.path / "previews", own.name, own.lock)
        self._trees = SyncClone(directory, self.order.remote, "", borrow=own.tree)

    def run_round(self, base: BaseProject) -> bool:
        """Preview what is new of the branch's open pull requests, end what is closed. Returns whether all is well."""
        same = self._base is not None and self._base.commit == base.commit
        if same and self._failures and time.monotonic() < self._ask:
            return False
        if self._base is not None and self._base.project.forge != base.project.forge:
            self._forge = None
        self._base = base
        try:
            self._list(base)
            for pull in self._find_due(base):
                if not self.stopping():
                    self._note(pull, self._try(base, pull))
            self._end_closed(base)
        except (MonkeyError, OSError) as exc:
            self._failures += 1
            wait = min(max(self.order.interval, 1.0) * 2.0 ** min(self._failures, 20), DRIFT_SECONDS)
            self._ask, self._look = time.monotonic() + wait, 0.0
            return self._tell(f"on hold: {explain_error(exc)}", well=False)
        self._failures = 0
        well = all(tried.outcome == "previewed" for tried in self._tried.values())
        return self._tell("; ".join(self._describe()), well=well)

    def _tell(self, text: str, *, well: bool) -> bool:
        if text != self.text:
            self.say(f"previews: {text}")
        self.text = text
        return well

    def _list(self, base: BaseProject) -> None:
        """Ask the forge for the open pull requests, if it is time to. Raises MonkeyError."""
        now = time.monotonic()
        if self.clone.heads != self._heads:
            self._heads, self._eager = self.clone.heads, now + ASK_SECONDS
        if now < self._ask and now > self._eager:
            return
        forge = self._open_forge(base)
        with self.resting():
            self._pulls = sorted(forge.list_open_pulls(), key=lambda pull: pull.number)
        self._ask = time.monotonic() + max(ASK_SECONDS, self.order.interval)
        self._tried = {pull.number: self._tried[pull.number] for pull in self._pulls if pull.number in self._tried}

    def _open_forge(self, base: BaseProject) -> Forge:
        """Return the forge that the branch's monkey.yaml, or the remote, names. Raises MonkeyError."""
        if self._forge is None:
            if base.project.previews is None:
                raise PlanError("expected `previews:` in the branch's monkey.yaml, which sets their limits, found none")
            if not self.token:
                raise ForgeError(f"expected a token for the forge in {MONKEY_TOKEN}, found none")
            check_endpoints(base.project, list_forge_endpoints(base.project))
            self._forge = open_project_forge(base.project.forge, self.order.shown, {}, self.token).forge
        return self._forge

    def _find_due(self, base: BaseProject) -> Iterator[PullRequest]:
        """Yield the pull requests that changed since they were tried, or whose next try has come."""
        for pull in self._pulls:
            tried = self._tried.get(pull.number)
            same = tried is not None and (tried.commit, tried.base) == (pull.commit, base.commit)
            if self._may_run(pull) and not (same and tried is not None and time.monotonic() < tried.again):
                yield pull

    def _may_run(self, pull: PullRequest) -> bool:
        return pull.base == self.order.branch and not pull.is_fork and bool(_COMMIT.fullmatch(pull.commit or ""))

    def _note(self, pull: PullRequest, tried: _Tried) -> None:
        before = self._tried.get(pull.number)
        failures = before.failures + 1 if before is not None and tried.outcome == "failed" else 0
        wait = min(max(self.order.interval, 1.0) * 2.0 ** min(failures, 20), DRIFT_SECONDS)
        again = time.monotonic() + (wait if tried.outcome == "failed" else DRIFT_SECONDS)
        self._tried[pull.number] = replace(tried, again=again, failures=failures)

    def _try(self, base: BaseProject, pull: PullRequest) -> _Tried:
        """Preview a pull request, and return what became of it."""
        tried = _Tried(pull.commit, base.commit, "previewed")
        try:
            root = self._check_out(pull)
        except (MonkeyError, OSError) as exc:
            return replace(tried, outcome="failed", why=explain_error(exc))
        try:
            return asyncio.run(self._preview(base, root, pull, tried))
        except (MonkeyError, OSError) as exc:
            # Mistakes of the branch; all others are of the store, of machines and the like.
            theirs = isinstance(exc, SpecError | PlanError) or type(exc) is MonkeyError
            return replace(tried, outcome="refused" if theirs else "failed", why=explain_error(exc))
        except Exception as exc:  # one branch must not end a sync that others use
            why = f"this is a bug in monkey: {type(exc).__name__}: {exc}"
            return replace(tried, outcome="failed", why=why)

    def _check_out(self, pull: PullRequest) -> Path:
        """Bring the pull request's newest commit here, and return its project's directory. Raises MonkeyError."""
        with self.resting():
            # Branches of the repository itself are fetched, and nothing else: a commit of a fork is not found.
            self.clone.update(pull.commit)
        self._trees.directory.path.mkdir(exist_ok=True)
        try:
            self._trees.prepare()
            self._trees.check_out(pull.commit)
        except (MonkeyError, OSError):
            self._git_failures += 1
            if self._git_failures % _GIT_FAILURES == 0:
                with suppress(OSError):
                    self._trees.directory.forget_tree()
            raise
        self._git_failures = 0
        return self._trees.tree / self.order.path

    async def _preview(self, base: BaseProject, root: Path, pull: PullRequest, tried: _Tried) -> _Tried:
        """Plan and apply, and return what became of it. Raises MonkeyError of every kind."""
        check_project_directory(root, self._trees.tree, self.order.path)
        # They say where DVC's cache is: any other repository's on this machine, whose data a branch could take by hash.
        if settings := self.clone.list_changed(base.commit, pull.commit, "**/.dvc", "**/.dvc/**"):
            raise PlanError(f"expected DVC's settings as the base has them, found another {settings[0]}")
        async with open_world(base.project, unattended=True) as own:
            # All that monkey.yaml says is of the base; of the pull request are specs, code and data.
            file = base.project.file or base.project.root / PROJECT_FILE
            world = replace(own, project=replace(base.project, root=root, file=file))
            check_datasets_inside(world.project, read_specs(world.project, list_spec_files(world.project)), always=True)
            planned = await plan_preview(world, pull.number, (), branch=pull.branch)
            planned, fruitless = await leave_fruitless_fleets(world, planned)
            plan = planned.plan
            if plan.changes:
                await own.begin()
                world.store = own.store
                await renew_idle_agents(world, plan, self._say_step)
                await execute_plan(world, plan, planned.wanted, self._say_step, stopping=self.stopping)
                await converge_previews(world, plan)
                fleets = [world.fleet(part.fleet) for part in plan.fleets if part.jobs]
                await wait_for_agents(world.reader(), fleets)
                for warning in plan.warnings:
                    self.say(f"pull request {pull.number}: {warning}")
            left = {sweep.name: sweep.refusal.line for sweep in plan.sweeps if sweep.refusal is not None}
            in_vain = {sweep.name: fruitless[sweep.name] for sweep in plan.sweeps if sweep.name in fruitless}
            why = "; ".join(f"{name}: {line.removeprefix('refused: ')}" for name, line in (in_vain | left).items())
            # What is refused for no commit is what a person decided: then all is well.
            wrong = any(sweep.desired.misplaced is not None for sweep in plan.sweeps if sweep.name in left)
            return replace(tried, outcome="refused" if wrong or in_vain else tried.outcome, why=why)

    def _end_closed(self, base: BaseProject) -> None:
        """Cancel the previews of pull requests that were closed since the last look. Raises MonkeyError."""
        numbers = frozenset(pull.number for pull in self._pulls)
        if not self._known - numbers and time.monotonic() < self._look:
            self._known = numbers
            return
        asyncio.run(self._end(base, numbers))
        self._known, self._look = numbers, time.monotonic() + DRIFT_SECONDS

    async def _end(self, base: BaseProject, numbers: frozenset[int]) -> None:
        forge = self._open_forge(base)
        async with open_world(base.project, unattended=True) as world:
            for number in sorted(await list_previewed_pulls(world) - numbers):
                # The list is older than what the store says: one may have been opened, and previewed by CI, since.
                pull = forge.read_pull(number)
                if pull is not None and pull.is_open:
                    continue
                for ended in await end_preview(world, number):
                    self._say_step(ended.view.state.name, "cancelled, as its pull request is closed")

    def _describe(self) -> Iterator[str]:
        """Yield what status says of the pull requests."""
        mine = [pull for pull in self._pulls if pull.base == self.order.branch]
        well = [str(n) for n, one in sorted(self._tried.items()) if one.outcome == "previewed" and not one.why]
        if well:
            yield _name_pulls(well)
        forks = [str(pull.number) for pull in mine if pull.is_fork]
        if forks:
            yield f"{_name_pulls(forks)} of a fork, not run"
        for number, tried in sorted(self._tried.items()):
            if tried.why:
                yield f"pull request {number} ({tried.commit[:10]}) {tried.outcome}: {tried.why}"
        if not mine:
            yield "no pull request is open"

    def _say_step(self, what: str, done: str) -> None:
        self.say(f"{what}: {done}")


def _name_pulls(numbers: list[str]) -> str:
    return f"pull request{'s' * (len(numbers) != 1)} {', '.join(numbers)}"
