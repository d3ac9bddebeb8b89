"""`monkey sync`: commits are applied as they come, by a real git, real agents and jobs that keep a ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.follower import Follower
from tests.acceptance.shop import Shop, until


@pytest.fixture
def follower(shop: Shop, require: Callable[[str], str]) -> Follower:
    """Return a project that is pushed to a remote."""
    require("git")
    return Follower(shop)


def test_a_commit_is_applied_and_a_broken_one_keeps_the_last_good_state(follower: Follower) -> None:
    first = follower.push(jobs=3)
    follower.once()
    follower.wait_for_jobs(3)
    line = follower.git_line()
    assert line.startswith(f"git: main {first[:10]} applied ") and "; it looked once, and ended " in line
    bad = follower.push(text="comand: x\n")
    said = follower.once(code=1)
    assert f"main {bad[:10]} refused: specs/sweep.yaml:5:1: unknown key 'comand'; did you mean 'command'?" in said
    line = follower.git_line()
    assert f"main {first[:10]} applied" in line and f"; {bad[:10]} refused: specs/sweep.yaml:5:1: " in line
    (follower.shop.root / "monkey.yaml").write_text("project: [\n")
    worse = follower.push(jobs=4)
    assert "monkey.yaml:" in follower.once(code=1)
    assert follower.beat()["seen"] == worse and follower.beat()["applied"] == first, "it knows where its beat goes"
    follower.remote.git("revert", "--no-edit", "-n", worse)
    third = follower.push(jobs=4)
    follower.once()
    follower.wait_for_jobs(4)
    assert follower.beat()["applied"] == third and follower.shop.json("status")["syncs"][0]["outcome"] == "applied"


def test_a_remote_that_goes_and_comes_back_a_branch_that_is_deleted_and_the_end(follower: Follower) -> None:
    first = follower.push(jobs=2)
    sync = follower.start()
    follower.wait_for(outcome="applied", applied=first)
    follower.wait_for_jobs(2)
    moved = follower.remote.path.with_name("moved")
    follower.remote.path.rename(moved)
    follower.wait_for(outcome="away", applied=first)
    assert "; the remote is away for " in follower.git_line()
    moved.rename(follower.remote.path)
    follower.wait_for(outcome="applied", problem="")
    second = follower.push(jobs=3)
    follower.wait_for(applied=second)
    follower.wait_for_jobs(3)
    follower.remote.git("update-ref", "-d", "refs/heads/main", at=follower.remote.path)
    follower.wait_for(outcome="gone")
    assert "; branch main is gone for " in follower.git_line()
    follower.remote.push()
    follower.wait_for(outcome="applied")
    follower.stop(sync)
    assert "; it was stopped " in follower.git_line()


def test_a_dead_sync_is_shown_as_dead(follower: Follower) -> None:
    follower.push(jobs=1)
    sync = follower.start()
    follower.wait_for(outcome="applied")
    os.kill(sync.pid, signal.SIGKILL)
    sync.communicate()
    assert "dead" not in follower.git_line()
    [beat] = follower.beats
    beat.write_text(json.dumps({**follower.beat(), "at": time.time() - 200}))
    assert "; it is dead: no heartbeat for 3m2" in follower.git_line()
    assert "forgot the sync of branch main of " in follower.shop.run("sync", "--forget").stdout
    assert not follower.beats and "git: " not in follower.shop.run("status").stdout
    assert "Nothing to forget" in follower.shop.run("sync", "--forget").stdout


def test_rewritten_history_is_refused_until_it_is_to_be_followed(follower: Follower) -> None:
    first = follower.push(jobs=2)
    second = follower.push(jobs=3)
    follower.once()
    follower.wait_for_jobs(3)
    follower.remote.git("reset", "-q", "--hard", first)
    follower.remote.push()
    assert f"it is older than {second[:10]}, which was applied" in follower.once(code=1)
    other = follower.push(jobs=4)
    said = follower.once("--directory", str(follower.shop.root.parent / "another"), code=1)
    assert f"its history does not contain {second[:10]}, which was applied" in said, "the store knows it, too"
    assert f"; {other[:10]} refused for " in follower.shop.run("status").stdout
    follower.once("--rewrite", "follow")
    follower.wait_for_jobs(4)
    assert follower.beat()["applied"] == other


def test_what_people_cancelled_and_what_another_branch_applied_is_left_alone(follower: Follower) -> None:
    shop, remote = follower.shop, follower.remote
    shop.ledger.hold()
    follower.push("mine", jobs=1)
    follower.once()
    until(lambda: shop.ledger.executions, "a job has begun")
    shop.run("cancel", "mine", "-m", "too dear")
    until(lambda: not shop.jobs, "it was stopped")
    shop.ledger.release()
    remote.git("checkout", "-q", "-b", "side")
    shop.spec(name="theirs", jobs=2, seconds=0.06)
    remote.commit(push=False)
    shop.run("apply", "specs/theirs.yaml")
    remote.git("checkout", "-q", "main")
    shop.spec(name="theirs", jobs=5, seconds=0.06)
    shop.spec(name="mine", jobs=5)
    shop.spec(name="new", jobs=2, seconds=0.07)
    head = remote.commit()
    said = follower.once(code=1)
    assert "sweep mine: stays cancelled by " in said and ": too dear (`monkey resume mine`" in said
    assert "sweep theirs: last applied by " in said and "not merged into this one" in said
    until(lambda: shop.states("new") == {"succeeded": 2}, "the third sweep is held up by none")
    assert follower.beat()["applied"] == head
    until(lambda: shop.states("theirs") == {"succeeded": 2}, "nor is the second")
    assert shop.states("mine") == {"cancelled": 1}
    assert shop.ledger.executions == 1 + 2 + 2


def test_a_squash_merge_of_an_applied_branch_is_followed(follower: Follower) -> None:
    shop, remote = follower.shop, follower.remote
    follower.push("mine", jobs=1)
    follower.once()
    remote.git("checkout", "-q", "-b", "side")
    shop.spec(name="mine", jobs=2)
    remote.commit(push=False)
    shop.run("apply")
    remote.git("checkout", "-q", "main")
    remote.git("merge", "-q", "--squash", "side")
    remote.commit()
    shop.spec(name="mine", jobs=3)
    head = remote.commit()
    follower.once()
    until(lambda: shop.states("mine") == {"succeeded": 3}, "the branch has what was applied, and more")
    assert follower.beat()["applied"] == head and shop.ledger.executions == 3


def test_an_unchanged_round_writes_nothing_but_the_beat(follower: Follower) -> None:
    head = follower.push(jobs=1)
    sync = follower.start()
    follower.wait_for(applied=head)
    follower.wait_for_jobs(1)
    until(lambda: not follower.shop.agents, "the agent has left")

    def written() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in follower.store.rglob("*") if path.is_file()}

    def switched() -> int:
        """Return how often the sync gave its processor up: it does so for each git."""
        text = Path(f"/proc/{sync.pid}/status").read_text()
        return int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    before, at = written(), switched()
    until(lambda: switched() > at + 20, "it looks again and again")
    changed = {path for path, moment in written().items() if before.get(path) != moment}
    assert changed <= set(follower.beats)
    follower.stop(sync)


def test_a_second_sync_in_one_directory_is_refused(follower: Follower) -> None:
    head = follower.push(jobs=1)
    sync = follower.start()
    follower.wait_for(applied=head)
    assert "another sync is at work in " in follower.shop.run("sync", "--once", code=1).stderr
    follower.stop(sync)


def test_two_syncs_apply_each_job_once(follower: Follower) -> None:
    syncs = [follower.start("--directory", str(follower.shop.root.parent / name)) for name in ("one", "two")]
    for jobs in (2, 4, 6):
        head = follower.push(jobs=jobs)
        until(
            lambda head=head: (
                len(follower.beats) == 2
                and all(json.loads(path.read_bytes() or b"{}").get("applied") == head for path in follower.beats)
            ),
            "both have applied it",
        )
    follower.wait_for_jobs(6)
    assert len(follower.shop.json("status")["syncs"]) == 2
    for sync in syncs:
        follower.stop(sync)


def test_a_store_in_the_repository_is_the_checkout_s_own_or_refused(follower: Follower) -> None:
    shop = follower.shop
    (shop.root / "monkey.yaml").write_text("project: shop\nproviders: {local: {idle_timeout: 1s}}\n")
    follower.push(jobs=1)
    said = follower.once(str(follower.remote.path), code=1)
    assert "in the work tree of this sync, which may be made again" in said
    follower.once()
    follower.wait_for_jobs(1)
    until(lambda: shop.states() == {"succeeded": 1}, "status in the checkout shows it")


def test_a_branch_cannot_name_files_of_this_machine_as_its_data(follower: Follower) -> None:
    shop = follower.shop
    private = shop.root.parent / "private"
    private.mkdir()
    (private / "key").write_text("secret")
    (shop.root / "data").mkdir()
    (shop.root / "data" / "link").symlink_to(private / "key")
    code = "code: {include: [job.py]}\n"
    shop.spec(f"{code}datasets: {{d: {private}}}\n", name="named", jobs=1)
    shop.spec(f"{code}datasets: {{d: data}}\n", name="linked", jobs=1, seconds=0.06)
    follower.push("honest", text=code, jobs=1)
    said = follower.once(code=1)
    assert f"sweep linked: dataset d is at {private}/key, outside of the repository" in said
    assert f"sweep named: dataset d is at {private}, outside of the repository; `--data {private}` permits it" in said
    follower.wait_for_jobs(1)
    assert not list(follower.store.glob("files/md5/*/*")), "nothing was sent"
    follower.once("--data", str(private))
    follower.wait_for_jobs(3)
    (shop.root / ".monkey").symlink_to(private)
    follower.remote.git("add", "-f", ".monkey")
    follower.push("honest", text=code, jobs=2)
    assert "expected no link `.monkey` in the repository" in follower.once("--data", str(private), code=1)
    assert sorted(path.name for path in private.iterdir()) == ["key"]


def test_the_unit_that_is_printed_is_one_that_systemd_takes(
    follower: Follower, require: Callable[[str], str], tmp_path: Path
) -> None:
    verify = require("systemd-analyze")
    unit = tmp_path / "monkey-sync.service"
    options = ("--branch", "it's 100%", "--directory", "/srv/a $b")
    unit.write_text(follower.shop.run("sync", "git@host:x y.git", *options, "--print-unit").stdout)
    done = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert '"git@host:x y.git"' in unit.read_text() and '"it\'s 100%%"' in unit.read_text()
    refused = follower.shop.run("sync", "https://token@host/x.git", "--print-unit", code=1)
    assert "everybody can read a unit" in refused.stderr


def test_a_sweep_whose_spec_is_gone_continues_and_that_is_said(follower: Follower) -> None:
    shop = follower.shop
    shop.ledger.hold()
    follower.push("slow", jobs=1)
    follower.once()
    until(lambda: shop.ledger.executions, "a job has begun")
    (shop.root / "specs" / "slow.yaml").unlink()
    shop.spec(name="other", jobs=1, seconds=0.06)
    head = follower.remote.commit()
    why = "sweep slow continues, though its spec is gone: --prune cancels it"
    assert f"main {head[:10]} applied: {why}" in follower.once()
    assert f" by sync on {follower.beat()['host']}; {why}; it looked once" in follower.git_line()
    assert why not in follower.once("--prune") and why not in follower.git_line()
    shop.ledger.release()


def test_an_endpoint_that_no_user_chose_is_refused_only_where_something_is_sent_there(follower: Follower) -> None:
    shop, file = follower.shop, follower.shop.root / "monkey.yaml"
    file.write_text(file.read_text() + "forge: {type: gitea, api: 'https://git.lab/api/v1', repository: a/b}\n")
    head = follower.push(jobs=1)
    follower.once()
    follower.wait_for_jobs(1)
    assert follower.beat()["applied"] == head
    file.write_text(file.read_text() + "notify: {forge: TOKEN}\n")
    bad = follower.push(jobs=2)
    said = follower.once(code=1)
    assert (
        f"{bad[:10]} refused: monkey.yaml:4:27: credentials for the forge would go to https://git.lab/api/v1, " in said
    )
    assert "forge: {type" not in said and "^" not in said, "a caret points nowhere in one line"
    assert "--project-file; or run `monkey apply` in a terminal, which asks once; it looked" in follower.git_line()
    assert shop.ledger.executions == 1


def test_a_state_directory_in_the_checkout_is_refused(follower: Follower) -> None:
    follower.push(jobs=1)
    for place in (".", "state"):
        refused = follower.shop.run("sync", "--once", "--directory", place, code=1)
        assert "outside of every git work tree" in refused.stderr
    assert not follower.remote.git("status", "--porcelain"), "nothing was left there"
