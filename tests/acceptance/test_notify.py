"""notify, as a user meets it: real agents, a real server on loopback that counts, refuses, hangs; and kill -9."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.shop import MONKEY, Shop, until
from tests.hook import Hook, hook

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Hook]:
    with hook() as state:
        yield state


def project(shop: Shop, *channels: str, key: bool = False) -> None:
    (shop.root / "monkey.yaml").write_text(f"project: shop\nnotify: [{', '.join(channels)}]\n")
    shop.env |= {"HOOK_KEY": "sesame"} if key else {}


def events(server: Hook) -> list[tuple[str, str]]:
    return [(told.body["sweep"], told.body["kind"]) for told in server.told if told.path == "/hook"]


def test_each_end_is_told_once_and_no_job_knows_the_secrets(shop: Shop, server: Hook) -> None:
    shop.env |= {"HOOK": server.url, "SLACK": server.url.replace("hook", "slack"), "HOOK_KEY": "sesame"}
    project(shop, "{webhook: HOOK, key: HOOK_KEY}", "{slack: SLACK, on: failed}")
    server.answers = [500, 503, 0]  # refused thrice, and taken then
    shop.spec("command: sh -c 'env > result.txt'\n", jobs=3, name="good")
    shop.spec("command: [sh, -c, 'exit {i}']\noutputs: []\n", jobs=3, name="bad")
    shop.run("apply", code=1)
    until(lambda: not shop.agents, "the agent leaves when all is told")
    hooks = [told for told in server.told if told.path == "/hook"]
    ids = {(told.body["sweep"], told.body["kind"]): told.headers["Idempotency-Key"] for told in hooks}
    assert ids.keys() == {("good", "finished"), ("bad", "failed")} and len(set(ids.values())) == 2
    assert all(told.body["event"] == ids[told.body["sweep"], told.body["kind"]] for told in hooks)
    bad = next(told.body for told in reversed(hooks) if told.body["sweep"] == "bad")
    assert bad["jobs"] == {"total": 3, "succeeded": 1, "stopped": 0, "failed": 2}
    assert bad["text"] == "sweep bad of shop has failed: 1 succeeded, 2 failed" and bad["project"] == "shop"
    (slack,) = {told.body["text"] for told in server.told if told.path == "/slack"}
    assert slack == bad["text"] and len(server.told) == 3 + 3  # what was refused was sent again, and nothing else
    shop.run("fetch", "good", "-o", "got")
    seen = "".join(path.read_text() for path in (shop.root / "got").glob("*/result.txt"))
    assert "MONKEY_JOB" in seen and "HOOK" not in seen and "SLACK" not in seen and "sesame" not in seen
    # What changes nothing is not told again; what is tried again is.
    before, known = len(server.told), len(events(server))
    spec = shop.root / "specs" / "good.yaml"
    spec.write_text(spec.read_text() + "priority: 3\n")
    shop.run("apply", "--yes", code=1)
    until(lambda: not shop.agents, "the agent leaves")
    assert len(server.told) == before
    shop.run("retry", "bad")
    shop.run("status", "-w", "bad", code=1)
    until(lambda: not shop.agents, "the agent leaves")
    assert events(server)[known:] == [("bad", "failed")]
    # Nothing of what is secret is anywhere that others read.
    found = subprocess.run(["grep", "-rlaE", f"sesame|{server.url}", str(shop.root / ".monkey")], capture_output=True)
    assert found.stdout == b""


def agent(shop: Shop) -> Any:
    """Start an agent as a machine would: nobody else looks after the fleet."""
    store = str(shop.root / ".monkey" / "store")
    command = [
        MONKEY[0],
        "-P",
        "-m",
        "monkey_agent.command_line",
        "--store",
        store,
        "--project",
        "shop",
        "--idle-timeout",
        "5",
    ]
    return subprocess.Popen(command, env=shop.env, cwd=shop.root, stdin=subprocess.DEVNULL, start_new_session=True)


def test_an_agent_that_is_killed_before_it_sends_and_before_it_notes(shop: Shop, server: Hook) -> None:
    project(shop, f"{{webhook: '{server.url}', on: [finished, failed]}}")
    server.answers, tried = [503] * 100, []
    shop.spec(jobs=2)
    shop.run("apply")
    until(lambda: len(server.told) > 1, "the notice is claimed, and cannot be sent")
    shop.kill(shop.agents)
    tried.append(len(server.told))
    server.answers.clear()
    server.answer.clear()  # from now on it takes what is sent, and does not answer
    second = agent(shop)
    until(lambda: len(server.told) > tried[0], "the next life of the agent takes the notice over, and sends it")
    second.send_signal(signal.SIGKILL)
    second.wait()
    server.answer.set()
    tried.append(len(server.told))
    third = agent(shop)
    assert third.wait(120) == 0
    assert len(server.told) == tried[1] + 1  # it could not know that the second one was heard
    fourth = agent(shop)
    assert fourth.wait(120) == 0 and len(server.told) == tried[1] + 1
    assert {told.body["event"] for told in server.told} == {server.told[0].body["event"]}
    assert shop.ledger.executions == 2
