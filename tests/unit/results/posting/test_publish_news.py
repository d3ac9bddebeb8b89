"""What is posted, when, and what is not: a real store, the real client, and a double of GitHub that counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.apply.world.world import World
from monkey.ci_run import CiRun
from monkey.forge.forge_port import Forge
from monkey.forge.open_forge import open_forge
from monkey.protocol.clock import MachineClock
from monkey.protocol.entries import Claim, ClaimEnd
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.notices.notice_claims import NoticeClaims
from monkey.protocol.notices.sweep_notices import hash_way, is_told
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import append_order, append_revision
from monkey.results.posting.masked_forge import MaskedForge
from monkey.results.posting.publish_news import PostedNews, publish_news, report_statuses
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.project.notify_channel import NotifyChannel
from monkey.store.create import create_object
from tests.forges.github_double import BOT, REPOSITORY, GitHubDouble
from tests.services import free_port
from tests.unit.apply.small_project import Pen, apply, opened, write_project

TOKEN = "ghs_0123456789abcdefghijklmn"
COMMIT, LATER = "a" * 40, "b" * 40


@pytest.fixture
def double() -> Iterator[GitHubDouble]:
    made = GitHubDouble()
    made.users[TOKEN], made.roles[BOT] = BOT, "write"
    yield made
    made.close()


def forge_of(double: GitHubDouble) -> Forge:
    run = CiRun(forge="github", api=double.url, repository=REPOSITORY)
    forge = open_forge(run, {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": double.url})
    assert forge is not None
    return forge


def statuses(double: GitHubDouble, commit: str = COMMIT) -> list[tuple[str, str]]:
    return [(each["state"], each["description"]) for each in double.statuses if each["sha"] == commit]


async def stand_at(world: World, at: str, **changes: object) -> Revision:
    """Append the sweep's revision once more, as applied from this commit of pull request 1."""
    state = (await world.reader().read()).sweeps["small"].state
    assert state.revision is not None
    git = {
        "commit": at,
        "branch": "main",
        "dirty": False,
        "pull": 1,
        "remote": f"https://github.com/{REPOSITORY}.git",
    }
    made = replace(state.revision, git={**git, **changes})
    await append_revision(world.at, world.keys, world.signers, made, state.head)
    return made


async def end_all(world: World, outcome: ClaimEnd = ClaimEnd.SUCCEEDED) -> None:
    pen = Pen(world)
    for job in (await world.reader().read()).sweeps["small"].ids:
        await pen.begin(job)
        await pen.end(job, outcome, reason="exit code 1", log_tail=[f"died of {TOKEN}"])


def live(root: Path, story: Callable[[World], Awaitable[None]]) -> None:
    """Apply a sweep in a new project, and let the story happen to it."""
    write_project(root)

    async def whole() -> None:
        async with opened(root) as world:
            await apply(world)
            await story(world)

    asyncio.run(whole())


def test_an_end_is_commented_once_and_then_nothing_is_sent(tmp_path: Path, double: GitHubDouble) -> None:
    number = double.open_pull("change", LATER)
    forge = MaskedForge(forge_of(double), {"GITHUB_TOKEN": TOKEN})

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        assert (await publish_news(world, forge, REPOSITORY)).comments == {}
        assert statuses(double) == statuses(double, LATER) == [("pending", "0/3")]
        await end_all(world, ClaimEnd.FAILED)
        assert list((await publish_news(world, forge, REPOSITORY)).comments) == ["small"]
        [comment] = double.pulls[number].comments.values()
        assert comment["body"].startswith("<!-- monkey:results:test:small -->"), (
            "another project may have a `small`, too"
        )
        assert "sweep `small` has failed" in comment["body"] and TOKEN not in comment["body"]
        assert statuses(double)[-1] == statuses(double, LATER)[-1] == ("failure", "3 failed")
        asked = len(double.asked)
        assert await publish_news(world, forge, REPOSITORY) == PostedNews()
        assert len(double.asked) == asked, "not even a question"

    live(tmp_path, story)


def test_a_commit_whose_revision_was_replaced_says_by_what(tmp_path: Path, double: GitHubDouble) -> None:
    double.open_pull("change", COMMIT)

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        await report_statuses(world, forge_of(double), REPOSITORY)
        await stand_at(world, LATER, pull=7)
        await stand_at(world, LATER, pull=7)
        await stand_at(world, "c" * 40, pull=7)
        await report_statuses(world, forge_of(double), REPOSITORY)
        assert statuses(double)[-1] == ("failure", f"superseded by {LATER[:10]} at 0/3"), "the next, not the newest"
        assert statuses(double, LATER) == [("failure", f"superseded by {'c' * 10} at 0/3")]
        assert statuses(double, "c" * 40) == [("pending", "0/3")]

    live(tmp_path, story)


def test_what_a_person_cancelled_is_a_status_and_no_comment(tmp_path: Path, double: GitHubDouble) -> None:
    number = double.open_pull("change", COMMIT)

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        await append_order(world.at, world.keys, world.signers, "small", "cancel", reason="too dear")
        await publish_news(world, forge_of(double), REPOSITORY)
        assert statuses(double) == [("failure", "cancelled: 0/3 (too dear)")]
        assert not double.pulls[number].comments
        assert await publish_news(world, forge_of(double), REPOSITORY) == PostedNews()

    live(tmp_path, story)


def test_each_project_of_a_repository_has_statuses_of_its_own(tmp_path: Path, double: GitHubDouble) -> None:
    async def story(world: World) -> None:
        for directory in ("labs/one", "labs/two"):
            await stand_at(world, COMMIT, directory=directory)
            await report_statuses(world, forge_of(double), REPOSITORY)
        assert [each["context"] for each in double.statuses] == ["monkey/small/labs/one", "monkey/small/labs/two"]

    live(tmp_path, story)


def test_a_forge_that_does_not_answer_is_left(tmp_path: Path) -> None:
    api = f"http://127.0.0.1:{free_port()}"

    async def story(world: World) -> None:
        waits = list[float]()
        await stand_at(world, COMMIT)
        forge = open_forge(CiRun("github", api, REPOSITORY), {"GITHUB_TOKEN": TOKEN}, waits.append)
        assert forge is not None
        posted = await publish_news(world, forge, REPOSITORY)
        assert posted == PostedNews(away=posted.away) and "Connection refused" in str(posted.away)

    live(tmp_path, story)


def test_an_answer_without_a_field_releases_the_claim(tmp_path: Path, double: GitHubDouble) -> None:
    number = double.open_pull("change", COMMIT)

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        await end_all(world)
        double.leaves_out = "html_url"
        posted = await publish_news(world, forge_of(double), REPOSITORY)
        assert "expected a text `html_url`, found an answer without it" in posted.troubles["small"].message
        assert posted.outcomes.keys() == {"small"} and len(double.pulls[number].comments) == 1
        double.leaves_out = ""
        assert list((await publish_news(world, forge_of(double), REPOSITORY)).comments) == ["small"]
        assert len(double.pulls[number].comments) == 1, "it found its own"

    live(tmp_path, story)


@pytest.mark.parametrize("git", [{"remote": "https://github.com/other/repo"}, {"commit": "../../user"}])
def test_what_is_not_of_this_repository_is_left_alone(
    tmp_path: Path, double: GitHubDouble, git: dict[str, str]
) -> None:
    async def story(world: World) -> None:
        await stand_at(world, COMMIT, **git)
        elsewhere = Counter([git["remote"]] if "remote" in git else [])
        assert await publish_news(world, forge_of(double), REPOSITORY) == PostedNews(elsewhere=elsewhere)
        assert not double.asked

    live(tmp_path, story)


def test_a_refusal_is_reported_and_posted_with_the_next_run(tmp_path: Path, double: GitHubDouble) -> None:
    number = double.open_pull("change", COMMIT)

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        await end_all(world)
        double.roles[BOT] = "read"
        posted = await publish_news(world, forge_of(double), REPOSITORY)
        assert list(posted.troubles) == ["small"] and not posted.comments
        double.roles[BOT] = "write"
        assert list((await publish_news(world, forge_of(double), REPOSITORY)).comments) == ["small"]
        assert len(double.pulls[number].comments) == 1

    live(tmp_path, story)


def test_a_claim_that_another_left_is_waited_for_and_taken_over(tmp_path: Path, double: GitHubDouble) -> None:
    double.open_pull("change", COMMIT)

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        await end_all(world)
        claims = NoticeClaims(world.at, MachineClock(), patience=0.0)
        await publish_news(world, forge_of(double), REPOSITORY, claims)
        way = hash_way("forge", REPOSITORY)
        [key] = [item.key for item in await world.at.list(world.keys.notices) if item.key.endswith("1")]
        assert f"/{way}/" in key
        log = EntryLog(key.removesuffix("00000001"))
        await log.refresh(world.at)
        assert is_told(log) and isinstance(log.entries[0], Claim) and log.head == 2
        other = EntryLog(world.keys.notice_log("small", "e" * 32, way))
        assert await other.append(world.at, create_object, 1, Claim("notify/m-x/1", 1, 0, "small"))
        assert await claims.take(other, "small") and not is_told(other)
        await claims.end(other, "small", ClaimEnd.SUCCEEDED)
        assert not await claims.take(other, "small"), "it was sent"

    live(tmp_path, story)


def test_a_status_that_came_too_late_is_set_right_where_agents_post(tmp_path: Path, double: GitHubDouble) -> None:
    double.open_pull("change", COMMIT)
    channel = NotifyChannel("forge", "TOKEN", forge=ForgeSettings("github", double.url, REPOSITORY))

    async def story(world: World) -> None:
        made = await stand_at(world, COMMIT)
        state = (await world.reader().read()).sweeps["small"].state
        told = replace(made, settings=replace(made.settings, notify=[channel]))
        await append_revision(world.at, world.keys, world.signers, told, state.head)
        await end_all(world)
        assert list((await publish_news(world, forge_of(double), REPOSITORY)).comments) == ["small"]
        sent = len(double.statuses)
        assert not (await publish_news(world, forge_of(double), REPOSITORY)).comments
        assert len(double.statuses) == sent
        # As of a run that had read the store before the agent posted.
        forge_of(double).set_status(COMMIT, "monkey/small", "pending", "2/3")
        assert not (await publish_news(world, forge_of(double), REPOSITORY)).comments
        assert statuses(double)[-1] == ("success", "3 succeeded")

    live(tmp_path, story)
