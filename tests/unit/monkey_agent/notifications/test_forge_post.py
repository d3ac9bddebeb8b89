"""What an agent posts at a forge: a real store, the real client, and a double of GitHub that counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from monkey.apply.world.world import World
from monkey.fleet.secret_values import SecretValues
from monkey.protocol.clock import MachineClock
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.notices.sweep_notices import Notice, make_silence_notice, name_forge_way
from monkey.protocol.notices.sweep_outcome import judge_sweep
from monkey.results.posting.masked_forge import MaskedForge
from monkey.results.posting.publish_news import publish_news
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.project.notify_channel import NotifyChannel
from monkey.store.create import create_object
from monkey_agent.notifications import forge_post
from monkey_agent.notifications.undelivered_notice import UndeliveredNotice
from tests.forges.github_double import BOT, REPOSITORY, GitHubDouble
from tests.unit.results.posting.test_publish_news import COMMIT, LATER, end_all, forge_of, live, stand_at, statuses

AGENTS, TOKEN, BOTS = "agents", "sesame-of-the-agents", "ghs_0123456789abcdefghijklmn"


@pytest.fixture
def double() -> Iterator[GitHubDouble]:
    made = GitHubDouble()
    made.users |= {TOKEN: AGENTS, BOTS: BOT}
    made.roles |= {AGENTS: "write", BOT: "write"}
    yield made
    made.close()


async def make_notice(world: World) -> Notice:
    """Return the notice of the sweep's end."""
    snapshot = await world.reader().read()
    notice = judge_sweep(world.keys.project, snapshot, snapshot.sweeps["small"], MachineClock().wall()).notice
    assert notice is not None
    return notice


async def post(world: World, double: GitHubDouble, notice: Notice, **secrets: str) -> None:
    """Post as an agent does that has claimed the notice."""
    channel = NotifyChannel("forge", "FORGE", forge=ForgeSettings("github", double.url, REPOSITORY))
    context = SimpleNamespace(store=world.at, keys=world.keys, signers=world.signers, clock=MachineClock())
    given = {"HOME": "/nonexistent", **(secrets or {"FORGE": TOKEN})}
    await forge_post.publish_notice(context, channel, notice, SecretValues(given))


def told(double: GitHubDouble, number: int) -> list[tuple[str, str]]:
    """Return the comments of a pull request, by their authors."""
    return [(each["user"]["login"], each["body"]) for each in double.pulls[number].comments.values()]


def story_of(check: Callable[[World, Notice], Awaitable[None]], root: Path, **git: object) -> None:
    """Let a sweep of this commit fail, and then the story happen."""

    async def story(world: World) -> None:
        await stand_at(world, COMMIT, **git)
        await end_all(world, ClaimEnd.FAILED)
        await check(world, await make_notice(world))

    live(root, story)


def test_the_comment_and_the_statuses_are_those_of_monkey_notify(tmp_path: Path, double: GitHubDouble) -> None:
    number = double.open_pull("change", LATER)

    async def check(world: World, notice: Notice) -> None:
        await post(world, double, notice)
        [(author, text)] = told(double, number)
        assert author == AGENTS and "sweep `small` has failed" in text
        assert statuses(double) == statuses(double, LATER) == [("failure", "3 failed")]
        asked = len(double.statuses)
        await post(world, double, notice)
        assert told(double, number) == [(author, text)] and len(double.statuses) == asked
        # CI's run knows the comment for ours by the store, though it is another account's.
        ci = MaskedForge(forge_of(double), {"GITHUB_TOKEN": BOTS})
        assert list((await publish_news(world, ci, REPOSITORY)).comments) == ["small"]
        assert told(double, number) == [(author, text)]
        # And the other way round.
        del double.pulls[number].comments[next(iter(double.pulls[number].comments))]
        double.pulls[number].comments[90] = {
            "id": 90,
            "body": text,
            "user": {"login": BOT},
            "html_url": "u",
        }
        await post(world, double, notice)
        assert told(double, number) == [(BOT, text)]

    story_of(check, tmp_path)


def test_a_comment_that_a_stranger_planted_is_not_taken_for_ours(tmp_path: Path, double: GitHubDouble) -> None:
    number = double.open_pull("change", LATER)
    planted = {
        "id": 1,
        "body": "<!-- monkey:results:test:small -->\nlies",
        "user": {"login": "mallory"},
        "html_url": "u",
    }
    double.pulls[number].comments[1] = planted

    async def check(world: World, notice: Notice) -> None:
        await post(world, double, notice)
        assert [author for author, _ in told(double, number)] == ["mallory", AGENTS]
        assert told(double, number)[0][1].endswith("lies")

    story_of(check, tmp_path)


def test_no_secret_of_the_sweep_or_of_the_process_is_in_a_text(
    tmp_path: Path, double: GitHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = double.open_pull("change", LATER)
    monkeypatch.setenv("SOME_TOKEN", "token of this process")

    async def story(world: World) -> None:
        revision = await stand_at(world, COMMIT)
        # Log tails are masked by the agent; what else a job may say is masked here.
        await end_all(world, ClaimEnd.FAILED)
        state = (await world.reader().read()).sweeps["small"].state
        assert state.revision == revision
        notice = {**await make_notice(world), "reason": "died of the token of this process"}
        await post(world, double, notice)
        assert {text for _, text in statuses(double)} == {"died of the ***"}
        [(_, text)] = told(double, number)
        assert "token of this process" not in text and BOTS not in text

    live(tmp_path, story)


@pytest.mark.parametrize(
    ("secrets", "role", "final", "said"),
    [
        ({"OTHER": "x"}, "write", False, "the secret is not on this machine: FORGE"),
        (
            {"FORGE": "revoked-token"},
            "write",
            True,
            r"the forge does not know the token.*put a new one into the secret FORGE\)",
        ),
        ({"FORGE": TOKEN}, "read", True, "statuses: write"),
    ],
)
def test_what_another_try_may_change(
    tmp_path: Path, double: GitHubDouble, secrets: dict[str, str], role: str, final: bool, said: str
) -> None:
    number = double.open_pull("change", LATER)
    double.roles[AGENTS] = role

    async def check(world: World, notice: Notice) -> None:
        with pytest.raises(UndeliveredNotice, match=said) as caught:
            await post(world, double, notice, **secrets)
        assert caught.value.final is final
        assert not {"revoked-token", TOKEN} & set(str(caught.value).split())
        # An agent that gives up says so, and `monkey notify` posts with its own token.
        log = EntryLog(world.keys.notice_log("small", notice["event"], name_forge_way(REPOSITORY)))
        for k, entry in enumerate((Claim("f/m/1", 1, 0, "small"), EndEntry(ClaimEnd.FAILED, "f/m/1", 1, "small")), 1):
            assert await log.append(world.at, create_object, k, entry)
        assert list((await publish_news(world, forge_of(double), REPOSITORY)).comments) == ["small"]
        assert [author for author, _ in told(double, number)] == [BOT]

    story_of(check, tmp_path)


def test_a_forge_that_is_away_or_answers_nonsense(
    tmp_path: Path, double: GitHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    double.open_pull("change", LATER)

    async def check(world: World, notice: Notice) -> None:
        double.faults = [(500, {}, {"message": "on fire"})]
        with pytest.raises(UndeliveredNotice, match="on fire") as caught:
            await post(world, double, notice)
        assert not caught.value.final
        double.faults = [(200, {}, [{"number": "x"}])]
        with pytest.raises(UndeliveredNotice, match="expected an object, found a list") as caught:
            await post(world, double, notice)
        assert caught.value.final
        # One that asks to wait for longer than a try may take: the agent is not held up.
        monkeypatch.setattr(forge_post, "WHOLE", 0.5)
        double.faults = [(429, {"Retry-After": "60"}, {"message": "slowly"})]
        with pytest.raises(UndeliveredNotice, match="not all is posted within") as caught:
            await post(world, double, notice)
        assert not caught.value.final

    story_of(check, tmp_path)


@pytest.mark.parametrize("git", [{"remote": "https://github.com/other/repo"}, {"commit": "../../user"}])
def test_what_is_of_no_commit_there_is_not_posted(tmp_path: Path, double: GitHubDouble, git: dict[str, str]) -> None:
    async def check(world: World, notice: Notice) -> None:
        with pytest.raises(UndeliveredNotice, match=f"of no commit of {REPOSITORY}") as caught:
            await post(world, double, notice)
        assert caught.value.final and not double.asked

    story_of(check, tmp_path, **git)


def test_what_another_revision_replaced_meanwhile_is_not_posted(tmp_path: Path, double: GitHubDouble) -> None:
    double.open_pull("change", LATER)

    async def check(world: World, notice: Notice) -> None:
        await stand_at(world, LATER)
        await post(world, double, notice)
        assert not double.asked

    story_of(check, tmp_path)


def test_what_an_agent_takes_for_stalled_is_posted_as_that(tmp_path: Path, double: GitHubDouble) -> None:
    number = double.open_pull("change", LATER)

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        state = (await world.reader().read()).sweeps["small"].state
        # Sooner than the ten minutes after which others would say so.
        await post(world, double, make_silence_notice(world.keys.project, state, 60.0))
        [(_, text)] = told(double, number)
        assert "sweep `small` has stalled" in text
        assert statuses(double) == [("failure", "stalled: 0/3")]

    live(tmp_path, story)
