"""Posting a sweep's end, once its notice is claimed: the same for CI's runs, and for agents."""

from __future__ import annotations

from typing import NamedTuple

from monkey.concurrency import run_detached_call
from monkey.forge.forge_port import Forge, PullRequest
from monkey.protocol.layout import Keys
from monkey.protocol.notices.sweep_outcome import SweepOutcome, SweepVerdict
from monkey.protocol.status.store_snapshot import SweepView
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.results.earlier_results import gather_earlier
from monkey.results.posting.comment_authors import list_authors, note_author
from monkey.results.posting.sweep_commits import CommitPulls, list_commits
from monkey.results.result_report import ResultReport, format_report
from monkey.results.result_rows import gather_results
from monkey.store.store_port import Store

#: The verdicts that are worth a comment; a person who cancels a sweep knows of it.
_COMMENTED = (SweepVerdict.FINISHED, SweepVerdict.FAILED, SweepVerdict.STALLED)


class SweepNews(NamedTuple):
    """A sweep, what has become of it, and its revisions."""

    view: SweepView
    outcome: SweepOutcome
    revisions: list[NumberedRevision]


async def write_end_comment(
    store: Store,
    keys: Keys,
    forge: Forge,
    pulls: CommitPulls,
    news: SweepNews,
    way: str,
) -> str:
    """Write the comment on a sweep's end, and return its URL; "" where there is none to write.

    `way`: the forge's name in the keys of notices. Raises ForgeError, StoreError.
    """
    name = news.view.state.name
    pull = await run_detached_call(find_pull, pulls, news.view)
    if pull is None or news.outcome.verdict not in _COMMENTED:
        return ""
    await note_author(store, keys, name, way, await run_detached_call(forge.name_author))
    text, known = _write_report(news), await list_authors(store, keys, name, way)
    key = f"results:{keys.project}:{name}"  # two projects of a repository may have sweeps of one name
    while True:
        url = await run_detached_call(forge.write_comment, pull.number, key, text, known)
        # Who came in between may not have seen ours, nor we theirs: one of the two has to go.
        if (now := await list_authors(store, keys, name, way)) <= known:
            return url
        known = now


def find_pull(pulls: CommitPulls, view: SweepView) -> PullRequest | None:
    """Return the pull request that asked for the jobs; one that only left them as they are, where there is no other."""
    return next((pull for git in list_commits(view.state) if (pull := pulls.find(git)) is not None), None)


def _write_report(news: SweepNews) -> str:
    revision = news.view.state.revision
    assert revision is not None  # it has a commit
    results = gather_results(revision.table, revision.settings, news.view.jobs)
    return format_report(ResultReport(news.view, results, news.outcome, gather_earlier(news.view, news.revisions)))
