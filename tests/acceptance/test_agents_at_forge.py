"""Agents that post results to a real Gitea when CI has long left: one comment, whoever posts, and after kill -9."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.shop import PATIENCE, PROMPT, Shop, until
from tests.acceptance.test_notify import agent
from tests.acceptance.test_notify_forge import MARK, Ci
from tests.forges.forge_proxy import ForgeProxy, serve_proxy
from tests.forges.gitea import Gitea

pytestmark = [pytest.mark.slow, pytest.mark.needs("gitea")]

#: Lives of agents that are killed while they post, after each request and before; and ends that are posted so.
KILLS, ENDS = (30, 6) if os.environ.get("MONKEY_LONG") else (10, 1)


@pytest.fixture
def proxy(gitea: Gitea) -> Iterator[ForgeProxy]:
    with serve_proxy(gitea.url) as state:
        yield state


@pytest.fixture
def ci(shop: Shop, gitea: Gitea, proxy: ForgeProxy) -> Iterator[Ci]:
    """Return a clone whose agents have a token for pull requests and statuses, of another account than CI's."""
    made = Ci(shop, gitea, proxy)
    gitea.make_person("agents")
    made.repository.api("PUT", "/collaborators/agents", {"permission": "write"})
    token = gitea.make_token("agents", "read:user", "write:issue", "write:repository")
    api = f"{proxy.url}/api/v1"
    (shop.root / "monkey.yaml").write_text(
        f"project: shop\nforge: {{type: gitea, api: '{api}'}}\nnotify: {{forge: FORGE_TOKEN}}\n"
    )
    shop.env |= {"FORGE_TOKEN": token, "MONKEY_TRUSTED_ENDPOINTS": api}
    yield made
    found = subprocess.run(["grep", "-rlaF", token, str(shop.root / ".monkey"), shop.state], capture_output=True)
    assert found.stdout == b"", "the token is in no log, and not in the store"
    assert token not in shop.agent_log


def kill_at(proxy: ForgeProxy, at: int, *, late: bool, kill: Any) -> None:
    """Kill before or after the forge has done what this request asks."""

    def act(number: int) -> None:
        if number == at:
            kill()

    proxy.reset()
    proxy.before, proxy.after = ((lambda number: None), act) if late else (act, lambda number: None)


def kill_posters(ci: Ci, number: int) -> int:
    """Let agents try to post, and kill each a little later than the one before; return how many were killed."""
    killed = 0
    for at, late in itertools.islice(itertools.product(range(2, 20), (True, False)), KILLS):
        lives: list[subprocess.Popen[str]] = []
        kill_at(ci.proxy, at, late=late, kill=lambda lives=lives: lives[0].send_signal(signal.SIGKILL))
        lives.append(agent(ci.shop))
        ended = lives[0].wait(120)
        assert ended in (0, -signal.SIGKILL) and len(ci.comments(number)) <= 1
        if ended == 0:
            break  # all is posted
        killed += 1
    ci.proxy.reset()
    assert agent(ci.shop).wait(120) == 0
    return killed


def test_agents_post_one_comment_though_ci_is_gone_and_they_are_killed(ci: Ci) -> None:
    shop, proxy = ci.shop, ci.proxy
    shop.spec("command: sh -c 'env > result.txt; [ {i} = 0 ]'\n", jobs=2)
    number, head, commit = ci.merge("first")
    kill_at(proxy, 1, late=False, kill=lambda: shop.kill(shop.agents))
    shop.run("apply", "--detach")
    until(lambda: proxy.asked and not shop.agents, "the first agent is killed as it asks the forge")
    killed = kill_posters(ci, number)
    for _ in range(1, ENDS):
        kill_at(proxy, 1, late=True, kill=lambda: shop.kill(shop.agents))
        asked = len(proxy.asked)
        shop.run("retry", "sweep")
        until(lambda asked=asked: len(proxy.asked) > asked and not shop.agents, "the agent of another end is killed")
        killed += kill_posters(ci, number)
    print(f"{killed} agents were killed as they posted {ENDS} ends")
    assert killed >= 5, "it is killed where there is something to kill"
    [comment] = ci.repository.list_comments(number)
    assert comment["user"]["login"] == "agents"
    assert comment["body"].startswith(f"{MARK}\n### monkey: sweep `sweep` has failed")
    assert {*ci.statuses(commit), *ci.statuses(head)} == {("failure", "1 succeeded, 1 failed")}
    # CI's scheduled run, with a token of another account, finds nothing to comment; nor does another agent.
    ci.notify()
    before = len(proxy.writes)
    assert agent(shop).wait(120) == 0
    ci.notify()
    # Outside of CI, it has the agents' token, and the forge of monkey.yaml.
    assert "sweep: failed (1 succeeded, 1 failed)" in shop.run("notify").stdout
    assert len(proxy.writes) == before
    assert [each["id"] for each in ci.repository.list_comments(number)] == [comment["id"]]
    shop.run("fetch", "sweep", "-o", "got", "--force")
    seen = "".join(path.read_text() for path in (shop.root / "got").glob("*/result.txt"))
    assert "MONKEY_JOB" in seen and "FORGE_TOKEN" not in seen


def test_agents_and_ci_that_are_killed_in_turn_write_one_comment(ci: Ci) -> None:
    shop, proxy = ci.shop, ci.proxy
    shop.spec(jobs=1)
    number, _, commit = ci.merge("first")

    def kill_writer() -> None:
        if proxy.writes and "/comments" in proxy.writes[-1]:
            shop.kill([*shop.agents, *shop.processes("notify")])

    proxy.after = lambda _: kill_writer()
    shop.run("apply", "--detach")
    until(lambda: ci.comments(number) and not shop.agents, "an agent is killed that has just written the comment")
    proxy.reset()
    # CI does not know of it but by the store: the agent's account is another one.
    ci.notify()
    [comment] = ci.repository.list_comments(number)
    assert comment["user"]["login"] == "agents"
    assert ci.statuses(commit)[-1] == ("success", "1 succeeded")
    # The other way round: an agent is killed before it has written anything, CI's run after that.
    shop.spec("command: sh -c 'exit 1'\noutputs: []\n", jobs=2)
    later, head, newest = ci.merge("second")
    kill_at(proxy, 1, late=False, kill=lambda: shop.kill(shop.agents))
    shop.run("apply", "--yes", "--detach")
    until(lambda: len(proxy.asked) > 0 and not shop.agents, "an agent is killed that has claimed the notice")
    proxy.reset()
    proxy.after = lambda _: kill_writer()
    run = ci.start_notify()
    run.communicate(timeout=120)
    assert run.returncode == -signal.SIGKILL
    proxy.reset()
    ci.notify()
    [comment] = ci.repository.list_comments(later)
    assert comment["user"]["login"] == "ann"
    # What comes later is told by an agent again, in the comment that is there.
    shop.run("retry", "sweep")
    shop.run("status", "-w", "sweep", code=1)
    until(lambda: not shop.agents, "the agent leaves when all is posted")
    [again] = ci.repository.list_comments(later)
    assert again["id"] == comment["id"] and "has failed" in again["body"]
    assert ci.statuses(newest)[-1] == ci.statuses(head)[-1] == ("failure", "2 failed")
    assert len(ci.comments(number)) == 1


def test_a_forge_that_does_not_answer_holds_up_no_job(ci: Ci) -> None:
    shop, proxy, answers = ci.shop, ci.proxy, threading.Event()
    shop.spec(jobs=1)
    number, _, _ = ci.merge("first")
    proxy.before = lambda _: answers.wait(PATIENCE)
    shop.run("apply", "--detach")
    until(lambda: proxy.asked, "an agent asks the forge, which does not answer")
    shop.spec(jobs=3, name="other")
    later, _, _ = ci.merge("second")
    shop.run("apply", "--detach")
    until(lambda: shop.ledger.executions == 3, "the other jobs of another sweep run meanwhile", PROMPT)
    assert len(shop.agents) == 1 and not ci.comments(number)
    answers.set()
    until(lambda: ci.comments(number) and ci.comments(later), "both ends are posted once it answers")
    assert len(ci.comments(number)) == len(ci.comments(later)) == 1
