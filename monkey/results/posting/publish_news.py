"""What no one has posted yet: looked for in the store, posted at a forge, recorded in the logs of notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from monkey.concurrency import run_detached_call
from monkey.errors import ForgeAway, MonkeyError
from monkey.forge.forge_port import Forge
from monkey.protocol.clock import MachineClock
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import Keys
from monkey.protocol.notices.notice_claims import NoticeClaims
from monkey.protocol.notices.sweep_notices import is_posted, name_forge_way
from monkey.protocol.notices.sweep_outcome import SweepOutcome, judge_sweep
from monkey.protocol.status.store_snapshot import SnapshotReader, SweepView
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.results.posting.commit_statuses import FindBetween, find_no_commits, set_sweep_statuses
from monkey.results.posting.post_end import SweepNews, find_pull, write_end_comment
from monkey.results.posting.sweep_commits import CommitPulls, is_of_repository, list_commits
from monkey.signing.entry_signers import EntrySigners
from monkey.store.store_port import Store

#: Seconds after an agent posted a sweep's end in which its statuses are looked at again.
_OUTRUN_SECONDS = 3600.0


class OpenProject(Protocol):
    """A project whose store is open; `monkey.apply.world.world.World` is one."""

    @property
    def at(self) -> Store: ...

    keys: Keys
    signers: EntrySigners

    def reader(self) -> SnapshotReader: ...


class _LoggedNews(NamedTuple):
    """A sweep of which not everything is posted, and the log of the notice of its end; None while it has not ended."""

    news: SweepNews
    log: EntryLog | None


@dataclass
class PostedNews:
    """What was posted."""

    #: Sweep to where its comment is.
    comments: dict[str, str] = field(default_factory=dict)
    #: Sweeps with their outcomes, of which statuses were set.
    outcomes: dict[str, SweepOutcome] = field(default_factory=dict)
    #: Sweep to why nothing could be posted of it.
    troubles: dict[str, MonkeyError] = field(default_factory=dict)
    #: Remote to how many sweeps were applied from there, which is another repository than the forge's.
    elsewhere: Counter[str] = field(default_factory=Counter)
    #: Why the rest was left to the next run.
    away: ForgeAway | None = None


async def publish_news(
    world: OpenProject,
    forge: Forge,
    repository: str,
    claims: NoticeClaims | None = None,
    find_between: FindBetween = find_no_commits,
) -> PostedNews:
    """Post the statuses of all sweeps, and a comment for each that has ended, unless all of that was posted before.

    One comment a sweep and pull request, however often this is killed. Trouble with one sweep holds up no other; a
    forge that does not answer is not asked again. `find_between`: git, where it is here. Raises StoreError.
    """
    claims = claims or NoticeClaims(world.at, MachineClock())

    async def write_end(pulls: CommitPulls, news: SweepNews, log: EntryLog) -> str:
        return await _post_end(world, forge, pulls, news, log, claims, name_forge_way(repository))

    return await _publish(world, forge, repository, find_between, write_end)


async def report_statuses(
    world: OpenProject, forge: Forge, repository: str, find_between: FindBetween = find_no_commits
) -> PostedNews:
    """Set the statuses of all sweeps of which not everything is posted: what `publish_news` does, without comments."""
    return await _publish(world, forge, repository, find_between, None)


async def _publish(
    world: OpenProject,
    forge: Forge,
    repository: str,
    find_between: FindBetween,
    write_end: Callable[[CommitPulls, SweepNews, EntryLog], Awaitable[str]] | None,
) -> PostedNews:
    posted, pulls = PostedNews(), CommitPulls(forge)
    async for news, log in _find_news(world, repository, posted.elsewhere):
        name = news.view.state.name
        try:
            # Detached: who is interrupted does not wait for a forge that is silent.
            await run_detached_call(set_sweep_statuses, forge, pulls, *news, find_between)
            posted.outcomes[name] = news.outcome
            if write_end is not None and log is not None and (url := await write_end(pulls, news, log)):
                posted.comments[name] = url
        except ForgeAway as exc:
            posted.away = exc
            break
        except MonkeyError as exc:
            posted.troubles[name] = exc
    return posted


async def _find_news(world: OpenProject, repository: str, elsewhere: Counter[str]) -> AsyncIterator[_LoggedNews]:
    """Yield the sweeps that were applied from commits of the repository, but those whose end was posted.

    `elsewhere`: counts those of other repositories.
    """
    snapshot = await world.reader().read()
    now, way = MachineClock().wall(), name_forge_way(repository)
    ours = []
    for view in snapshot.sweeps.values():
        commits = [] if view.state.is_foreign else list_commits(view.state)
        if commits and is_of_repository(commits[-1], repository):
            ours.append(view)
        elif commits:
            elsewhere[str(commits[-1]["remote"])] += 1
    for view in ours:
        outcome, log = judge_sweep(world.keys.project, snapshot, view, now), None
        if outcome.notice is not None:
            log = EntryLog(world.keys.notice_log(view.state.name, outcome.notice["event"], way))
            await log.refresh(world.at)
            if is_posted(log):
                if not _may_be_outrun(view, log, now):
                    continue
                log = None
        revisions = await list_revisions(world.at, world.keys, world.signers, view.state.name)
        yield _LoggedNews(SweepNews(view, outcome, revisions), log)


def _may_be_outrun(view: SweepView, log: EntryLog, now: float) -> bool:
    """May a status of an agent's, on the sweep's end, have been replaced since by one of a run that knew of none yet?

    Those that are as they should be are not sent again.
    """
    revision, end = view.state.revision, log.tail
    agents = revision is not None and any(channel.kind == "forge" for channel in revision.settings.notify)
    return agents and isinstance(end, EndEntry) and now - end.at < _OUTRUN_SECONDS


async def _post_end(
    world: OpenProject,
    forge: Forge,
    pulls: CommitPulls,
    news: SweepNews,
    log: EntryLog,
    claims: NoticeClaims,
    way: str,
) -> str:
    """Write the comment on a sweep's end, and record that; return its URL, "" where there is none to write."""
    name = news.view.state.name
    await run_detached_call(find_pull, pulls, news.view)  # before the claim: trouble with that needs none
    if not await claims.take(log, name):
        return ""
    try:
        url = await write_end_comment(world.at, world.keys, forge, pulls, news, way)
    except MonkeyError as exc:
        await claims.end(log, name, ClaimEnd.RELEASED, exc.message)
        raise
    await claims.end(log, name, ClaimEnd.SUCCEEDED)
    return url
