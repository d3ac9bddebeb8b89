"""Previews of pull requests: a real repository, real agents, and the jobs' own ledger as the judge."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

BASE = "project: shop\npreviews: {jobs: 3, max_concurrent_jobs: 2, expires: 1h}\n"
#: What a stranger would like it to be.
GREEDY = "project: shop\npreviews: {jobs: 200, max_concurrent_jobs: 200, expires: 7d}\n"


def git(shop: Shop, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *arguments], cwd=shop.root, check=True, capture_output=True, text=True).stdout


def commit(shop: Shop, text: str) -> None:
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", text)


@pytest.fixture
def repository(shop: Shop) -> Shop:
    """Return a project in git, on `main`, that allows previews, and has one sweep that was applied."""
    (shop.root / "monkey.yaml").write_text(BASE)
    (shop.root / ".gitignore").write_text(".monkey\n")
    git(shop, "init", "-q")
    shop.spec(jobs=2, name="plain")
    commit(shop, "base")
    shop.run("apply")
    return shop


def ci(shop: Shop, pull: int) -> None:
    """Let what follows be a run of CI for a pull request; the base's monkey.yaml lies where its workflow puts it."""
    base, event = Path(shop.state).with_name("base.yaml"), Path(shop.state).with_name("event.json")
    base.write_text(git(shop, "show", "main:monkey.yaml"))
    event.write_text(json.dumps({"pull_request": {"number": pull}}))
    shop.env |= {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event), "BASE": str(base)}


def most_at_once(shop: Shop) -> int:
    """Return how many jobs ran at the same time at most, by the ledger."""
    running, most = set[str](), 0
    for line in shop.ledger.lines:
        running = running | {line.job} if line.what == "begin" else running - {line.job}
        most = max(most, len(running))
    return most


def test_a_pull_request_runs_some_jobs_and_after_the_merge_only_the_rest_run(repository: Shop) -> None:
    shop = repository
    before = shop.ledger.executions
    git(shop, "checkout", "-q", "-b", "more")
    shop.spec("max_concurrent_jobs: 50\n", jobs=8, seconds=0.1, name="digits")
    commit(shop, "digits")
    shown = shop.run("plan", "--preview", "12").stdout
    assert "preview of pull request 12: 3 of 8 jobs that no sweep has yet; at most 2 at once on local" in shown
    assert "sweep plain" not in shown and shop.ledger.executions == before
    shop.run("apply", "--preview", "12")
    assert shop.ledger.executions == before + 3 and most_at_once(shop) <= 2
    parameters = sorted(row["parameters"]["i"] for row in shop.json("list", "jobs", "pr-12.digits"))
    assert parameters[0] == 0 and parameters[-1] == 7  # both ends
    # A push that changes no job runs none again.
    (shop.root / "README.md").write_text("digits\n")
    commit(shop, "words")
    assert shop.run("plan", "--preview", "12", "--detailed-exitcode").returncode == 0
    shop.run("apply", "--preview", "12")
    assert shop.ledger.executions == before + 3
    # Squashed into main: the sweep runs the rest, each job once.
    git(shop, "checkout", "-q", "main")
    git(shop, "merge", "-q", "--squash", "more")
    commit(shop, "digits (#12)")
    assert "= 3 jobs (3 finished in sweep pr-12.digits)" in shop.run("plan").stdout
    shop.run("apply")
    jobs = {row["job"] for row in shop.json("list", "jobs", "digits")}
    assert len(jobs) == 8 and all(shop.ledger.begins[job] == 1 for job in jobs)
    assert set(shop.ledger.begins.values()) == {1} and not shop.ledger.overlaps
    # Merged: nothing is left to preview.
    assert "Nothing to preview" in shop.run("apply", "--preview", "12").stdout


def test_a_closed_pull_request_ends_what_runs(repository: Shop) -> None:
    shop = repository
    shop.ledger.hold()
    shop.spec(jobs=8, name="digits")
    shop.run("apply", "--preview", "12", "--detach")
    shop.run("apply", "--preview", "13", "--detach")
    until(lambda: len(shop.jobs) >= 2, "jobs of the preview run")
    said = shop.run("cancel", "--preview", "12").stdout
    assert "pr-12.digits: cancelled (3 jobs" in said and "pr-13" not in said
    assert "pull request 12 was closed" in shop.run("info", "pr-12.digits").stdout
    assert "nothing to cancel" in shop.run("cancel", "--preview", "12").stdout
    shop.run("cancel", "--preview", "13")
    until(lambda: not shop.jobs, "the jobs are stopped")
    until(lambda: shop.states("pr-12.digits") == {"cancelled": 3}, "its jobs are released")


def test_a_hostile_branch_raises_no_limit(repository: Shop) -> None:
    shop = repository
    before = shop.ledger.executions
    git(shop, "checkout", "-q", "-b", "hostile")
    (shop.root / "monkey.yaml").write_text(GREEDY)
    more = "max_concurrent_jobs: 99\npriority: 1000\nexpires: 7d\nmax_retries: 0\n"
    shop.spec(more, jobs=30, name="digits")
    commit(shop, "greedy")
    ci(shop, 66)
    refused = shop.run("apply", "--preview", "66", "--detach", code=1)
    assert "expected the base's monkey.yaml" in refused.stderr and "--project-file" in refused.stderr
    refused = shop.run("plan", "--preview", "66", "--project-file", "monkey.yaml", code=1)
    assert "expected the base's monkey.yaml" in refused.stderr
    refused = shop.run("plan", "--preview", "67", "--project-file", shop.env["BASE"], code=1)
    assert "expected --preview 66" in refused.stderr
    shop.run("apply", "--preview", "66", "--project-file", shop.env["BASE"])
    assert shop.ledger.executions == before + 3 and most_at_once(shop) <= 2
    settings = shop.json("info", "pr-66.digits")["settings"]
    assert (settings["max_concurrent_jobs"], settings["priority"], settings["expires"]) == (2, -1000, 3600.0)
    # Nor does it by what it names, asks for or calls itself.
    shop.env["KEY"] = "sesame"
    for text, message in (
        ("secrets: [KEY]\n", "digits.yaml: expected no secret but those that previews may have (none), found KEY"),
        ("name: pr-66.digits\n", "digits.yaml:4:7: expected a sweep's own name"),
        ("provider: gpus\n", "digits.yaml"),
    ):
        shop.spec(text, jobs=30, name="digits")
        done = shop.run("apply", "--preview", "66", "--project-file", shop.env["BASE"], code=1)
        assert message in done.stderr
    assert shop.ledger.executions == before + 3


def test_what_cannot_be_asked_for_together_is_refused(repository: Shop) -> None:
    for words in (
        ("plan", "--preview", "12", "-o", "plan.json"),
        ("plan", "--preview", "12", "--no-store"),
        ("apply", "--preview", "12", "plan.json"),
        ("apply", "--preview", "12", "--keep-stale", "code"),
        ("apply", "--preview", "0"),
        ("apply", "--preview", "1; true"),
        ("cancel", "plain", "--preview", "12"),
        ("cancel",),
    ):
        done = repository.run(*words, code=1)
        assert "error: " in done.stderr and not done.stdout, f"{words}: {done.stdout}"
    (repository.root / "monkey.yaml").unlink()
    assert "expected `previews:`" in repository.run("apply", "--preview", "12", code=1).stderr
