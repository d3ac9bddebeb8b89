"""kill -9 of everything, again and again: nothing runs twice at once, nothing is lost, work goes on at once."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, PATIENCE, PROMPT, Shop, until

SLOTS = os.cpu_count() or 1


def check(shop: Shop, jobs: int, kills: int) -> None:
    """Hold the store against the ledger, after so many kills."""
    ledger = shop.ledger
    assert not ledger.overlaps
    assert len(ledger.begins) == jobs, "a job never ran"
    assert ledger.executions <= jobs + SLOTS * kills
    rows = shop.json("results", "sweep")
    assert [row["state"] for row in rows] == ["succeeded"] * jobs
    listed = shop.json("list", "jobs", "sweep")
    digests = ledger.digests
    for job in listed:
        assert job["outputs"]["result.txt"] in digests[job["job"]], "a recorded output is not one that the job wrote"
    kept = sorted(shop.root.glob(".monkey/store/projects/shop/jobs/*/out/*/outputs/result.txt"))
    assert {path.parents[3].name for path in kept} == {job["job"] for job in listed}, "a result is lost"


@pytest.mark.slow
def test_kill_of_all_three_times_then_of_agent_and_supervisor(shop: Shop) -> None:
    jobs = 200
    shop.spec(jobs=jobs, seconds=0.1)
    for kill in range(4):
        apply = shop.start("apply")
        before, done = shop.ledger.executions, len(shop.ledger.digests)
        began = time.monotonic()
        until(lambda before=before: shop.ledger.executions > before, f"work goes on after kill {kill}")
        assert time.monotonic() - began < PROMPT, "somebody waited for a lease"
        until(lambda done=done: len(shop.ledger.digests) > done + 20, "some jobs end")
        if kill < 3:
            shop.kill_all()
            apply.communicate()
        else:
            agent_and_supervisor = shop.processes("monkey_agent")
            assert len(agent_and_supervisor) >= 2
            shop.kill(agent_and_supervisor)
            # This apply lives on: it is the one that starts another agent.
            out, err = apply.communicate(timeout=120)
            assert apply.returncode == 0, out + err
    check(shop, jobs, kills=4)


@pytest.mark.parametrize("name", ["agent", "all that is called so"])
def test_agent_that_dies_takes_its_jobs_along(shop: Shop, name: str) -> None:
    shop.spec(jobs=2, seconds=60)
    shop.run("apply", "--detach")
    until(lambda: len(shop.jobs) >= min(2, SLOTS), "jobs run")
    if name == "agent":
        (agent,) = shop.agents
        os.kill(agent, signal.SIGKILL)
    else:
        found = shop.processes("monkey_agent")
        assert len(found) >= 3, "agent, guard and supervisor"
        shop.kill(found)
    began = time.monotonic()
    until(lambda: not shop.jobs, "jobs are gone")
    assert time.monotonic() - began < PROMPT, "the supervisor waited for its deadline"
    until(lambda: not shop.processes(), "the supervisor is gone, too")


def test_apply_that_dies_leaves_the_sweep_running(shop: Shop) -> None:
    shop.spec(jobs=10, seconds=0.3)
    apply = shop.start("apply")
    until(lambda: shop.ledger.executions, "work begins")
    apply.kill()
    apply.communicate()
    until(lambda: len(shop.ledger.digests) == 10, "the agent goes on alone")
    shop.run("apply")
    check(shop, 10, kills=0)


@pytest.mark.slow
def test_two_agents_on_one_store_share_the_work(shop: Shop) -> None:
    shop.spec(jobs=60, seconds=0.2)
    shop.run("apply", "--detach")
    store = str(shop.root / ".monkey" / "store")
    post = ["--store", store, "--project", "shop", "--fleet", "local", "--idle-timeout", "2"]
    other = shop.start("agent", *post, "--name", "other")
    shop.run("apply")
    out, err = other.communicate(timeout=PATIENCE)
    assert other.returncode == 0, out + err
    check(shop, 60, kills=0)
    agents = {path.parent.parent.name for path in shop.root.glob(".monkey/store/projects/shop/agents/local/*/*/beat")}
    assert len(agents) == 2
    segments = [path.read_text() for path in shop.root.glob(".monkey/store/projects/shop/jobs/*/00000001")]
    claimed = [json.loads(text)["agent"].split("/")[1] for text in segments]
    assert min(claimed.count(agent) for agent in agents) >= 5, "one of two did all the work"


def test_agent_started_twice_is_turned_away(shop: Shop) -> None:
    shop.spec(jobs=2, seconds=30)
    shop.run("apply", "--detach")
    until(lambda: shop.jobs, "jobs run")
    store = str(shop.root / ".monkey" / "store")
    second = shop.run("agent", "--store", store, "--project", "shop", "--fleet", "local", code=None)
    assert second.returncode != 0
    assert "already runs here" in second.stdout + second.stderr
    assert len(shop.agents) == 1
    assert not shop.ledger.overlaps


def test_store_begun_anew_in_the_same_place_is_worked_on_at_once(shop: Shop) -> None:
    (shop.root / "monkey.yaml").write_text("project: shop\nproviders: {local: {idle_timeout: 300s}}\n")
    shop.spec(jobs=4, seconds=0.1)
    shop.run("apply")
    assert shop.agents, "its agent is not yet idle for long enough to leave"
    while (shop.root / ".monkey").exists():  # a heartbeat may be written while its directory is removed
        shutil.rmtree(shop.root / ".monkey", ignore_errors=True)
    began = time.monotonic()
    shop.run("apply")
    assert time.monotonic() - began < PROMPT, "the old store's agent kept the place"
    assert shop.ledger.executions == 8


#: How long the store is away: a moment, and beyond all deadlines, where there is time for that.
AWAY = [
    4,
    pytest.param(125, marks=pytest.mark.skipif("MONKEY_LONG" not in os.environ, reason="takes minutes: MONKEY_LONG=1")),
]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", AWAY)
def test_store_that_is_renamed_away_for_a_while(shop: Shop, seconds: float) -> None:
    shop.spec(jobs=20, seconds=0.5)
    apply = shop.start("apply")
    until(lambda: len(shop.ledger.digests) > 3, "some jobs end")
    store = shop.root / ".monkey" / "store"
    away = store.with_name("away")
    store.rename(away)
    time.sleep(seconds)  # the outage itself: nothing is hoped for meanwhile
    assert not store.exists(), "something was begun anew in the empty place"
    status = shop.run("status", code=1)
    assert "moved, removed, or its disk is not mounted" in status.stderr
    assert not store.exists()
    away.rename(store)
    out, err = apply.communicate(timeout=180)
    assert apply.returncode == 0, out + err
    check(shop, 20, kills=0)
    assert shop.ledger.executions == 20, "an outage costs no execution"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", AWAY)
def test_store_whose_disk_is_unmounted_for_a_while(
    shop: Shop, require: Callable[[str], str], tmp_path: Path, seconds: float
) -> None:
    """In a mount namespace of its own, in which all processes of the project live."""
    require("mount")
    disk, script = tmp_path / "disk", tmp_path / "outage.sh"
    disk.mkdir()
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {disk}/mounted/store\n")
    shop.spec(jobs=20, seconds=0.5)
    monkey = shlex.join(MONKEY)
    script.write_text(f"""
    mkdir {disk}/mounted {disk}/real && mount -t tmpfs none {disk}/real || exit 99
    mount --bind {disk}/real {disk}/mounted || exit 99
    {monkey} apply & apply=$!
    until test "$(grep -c end {shop.ledger.directory}/ledger 2>/dev/null)" -ge 4; do sleep 0.1; done
    umount -l {disk}/mounted || exit 98
    sleep {seconds}
    test -z "$(ls -A {disk}/mounted)" || exit 97
    {monkey} status && exit 96
    mount --bind {disk}/real {disk}/mounted || exit 95
    wait $apply || exit 94
    {monkey} results --json > {tmp_path}/rows
    """)
    command = ["unshare", "--mount", "--map-root-user", "bash", str(script)]
    done = subprocess.run(command, cwd=shop.root, env=shop.env, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}{done.stderr}{shop.agent_log}"
    assert [row["state"] for row in json.loads((tmp_path / "rows").read_text())] == ["succeeded"] * 20
    assert shop.ledger.executions == 20 and not shop.ledger.overlaps
