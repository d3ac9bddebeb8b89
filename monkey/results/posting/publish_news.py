"""What no one has posted yet: looked for in the store, posted at a forge, recorded in the logs of notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from monkey.errors import MonkeyError
from monkey.forge.forge_port import Forge, PullRequest
from monkey.protocol.clock import MachineClock
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import Keys
from monkey.protocol.notices.notice_claims import NoticeClaims
from monkey.protocol.notices.sweep_notices import hash_way, is_told
from monkey.protocol.notices.sweep_outcome import SweepOutcome, SweepVerdict, judge_sweep
from monkey.protocol.status.store_snapshot import SnapshotReader, SweepView
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.results.earlier_results import gather_earlier
from monkey.results.posting.commit_statuses import FindBetween, find_no_commits, set_sweep_statuses
from monkey.results.posting.sweep_commits import CommitPulls, is_of_repository, list_commits
from monkey.results.result_report import ResultReport, format_report
from monkey.results.result_rows import gather_results
from monkey.signing.entry_signers import EntrySigners
from monkey.store.store_port import Store

#: The verdicts that are worth a comment; a person who cancels a sweep knows of it.
_COMMENTED = (SweepVerdict.FINISHED, SweepVerdict.FAILED, SweepVerdict.STALLED)


class OpenProject(Protocol):
    """A project whose store is open; `monkey.apply.world.world.World` is one."""

    @property
    def at(self) -> Store: ...

    keys: Keys
    signers: EntrySigners

    def reader(self) -> SnapshotReader: ...


class _News(NamedTuple):
    """A sweep of which not everything is posted."""

    view: SweepView
    outcome: SweepOutcome
    revisions: list[NumberedRevision]
    #: Of the notice of its end; None while it has not ended.
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


async def publish_news(
    world: OpenProject,
    forge: Forge,
    repository: str,
    claims: NoticeClaims | None = None,
    find_between: FindBetween = find_no_commits,
) -> PostedNews:
    """Post the statuses of all sweeps, and a comment for each that has ended, unless all of that was posted before.

    One comment a sweep and pull request, however often this is killed. Trouble with one sweep holds up no other.
    `find_between`: git, where it is here. Raises StoreError.
    """
    claims = claims or NoticeClaims(world.at, MachineClock())
    posted, pulls = PostedNews(), CommitPulls(forge)
    async for news in _find_news(world, repository):
        name = news.view.state.name
        try:
            about = news.view, news.outcome, news.revisions, find_between
            await asyncio.to_thread(set_sweep_statuses, forge, pulls, *about)
            posted.outcomes[name] = news.outcome
            if news.log is not None and (url := await _post_end(forge, pulls, news, news.log, claims)):
                posted.comments[name] = url
        except MonkeyError as exc:
            posted.troubles[name] = exc
    return posted


async def report_statuses(
    world: OpenProject, forge: Forge, repository: str, find_between: FindBetween = find_no_commits
) -> PostedNews:
    """Set the statuses of all sweeps of which not everything is posted: what `publish_news` does, without comments."""
    posted, pulls = PostedNews(), CommitPulls(forge)
    async for news in _find_news(world, repository):
        try:
            about = news.view, news.outcome, news.revisions, find_between
            await asyncio.to_thread(set_sweep_statuses, forge, pulls, *about)
            posted.outcomes[news.view.state.name] = news.outcome
        except MonkeyError as exc:
            posted.troubles[news.view.state.name] = exc
    return posted


async def _find_news(world: OpenProject, repository: str) -> AsyncIterator[_News]:
    """Yield the sweeps that were applied from commits of the repository, but those whose end was posted."""
    snapshot = await world.reader().read()
    now, way = MachineClock().wall(), hash_way("forge", repository)
    for view in snapshot.sweeps.values():
        commits = list_commits(view.state)
        if not commits or view.state.is_foreign or not is_of_repository(commits[-1], repository):
            continue
        outcome, log = judge_sweep(world.keys.project, snapshot, view, now), None
        if outcome.notice is not None:
            log = EntryLog(world.keys.notice_log(view.state.name, outcome.notice["event"], way))
            await log.refresh(world.at)
            if is_told(log):
                continue
        revisions = await list_revisions(world.at, world.keys, world.signers, view.state.name)
        yield _News(view, outcome, revisions, log)


async def _post_end(forge: Forge, pulls: CommitPulls, news: _News, log: EntryLog, claims: NoticeClaims) -> str:
    """Write the comment on a sweep's end, and record that; return its URL, "" where there is none to write."""
    name = news.view.state.name
    pull = await asyncio.to_thread(_find_pull, pulls, news.view)
    if not await claims.take(log, name):
        return ""
    url = ""
    try:
        if pull is not None and news.outcome.verdict in _COMMENTED:
            url = await asyncio.to_thread(forge.write_comment, pull.number, f"results:{name}", _write_report(news))
    except MonkeyError as exc:
        await claims.end(log, name, ClaimEnd.RELEASED, exc.message)
        raise
    await claims.end(log, name, ClaimEnd.SUCCEEDED)
    return url


def _find_pull(pulls: CommitPulls, view: SweepView) -> PullRequest | None:
    """Return the pull request that asked for the jobs; one that only left them as they are, where there is no other."""
    return next((pull for git in list_commits(view.state) if (pull := pulls.find(git)) is not None), None)


def _write_report(news: _News) -> str:
    revision = news.view.state.revision
    assert revision is not None  # it has a commit
    results = gather_results(revision.table, revision.settings, news.view.jobs)
    return format_report(ResultReport(news.view, results, news.outcome, gather_earlier(news.view, news.revisions)))
