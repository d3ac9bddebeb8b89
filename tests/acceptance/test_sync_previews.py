"""`monkey sync --previews`: pull requests run within the branch's limits, and end with them; those of forks do not run.

The judges are the jobs' own ledger, and the requests that the forge counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.follower import Follower
from tests.acceptance.shop import Shop, until
from tests.forges.github_double import REPOSITORY, GitHubDouble

LIMITS = "{jobs: 3, max_concurrent_jobs: 2, expires: 1h}"


class Forged(Follower):
    """A follower whose repository is at a double of GitHub, too."""

    def __init__(self, shop: Shop, forge: GitHubDouble) -> None:
        """Push a base that allows previews, with one sweep that is done."""
        super().__init__(shop)
        self.forge = forge
        with (shop.root / "monkey.yaml").open("a") as file:
            file.write(f"forge: {{type: github, api: '{forge.url}', repository: {REPOSITORY}}}\n")
            file.write(f"previews: {LIMITS}\n")
        forge.users["token"] = "bot"
        shop.env |= {"MONKEY_FORGE_TOKEN": "token", "MONKEY_TRUSTED_ENDPOINTS": forge.url}
        self.push("plain", jobs=2)
        self.once()
        self.wait_for_jobs(2)

    def branch(self, name: str, jobs: int, text: str = "") -> str:
        """Push a branch off main whose spec `digits` has so many jobs; return the commit."""
        self.remote.git("checkout", "-q", "-B", name)
        self.shop.spec(text, name="digits", jobs=jobs, seconds=0.06)
        self.remote.git("add", "-A")
        self.remote.git("commit", "-q", "-m", name)
        self.remote.git("push", "-q", "--force", "origin", f"HEAD:{name}")
        commit = self.remote.git("rev-parse", "HEAD")
        self.remote.git("checkout", "-q", "main")
        return commit

    def preview(self, code: int = 0) -> str:
        """Have a sync look once, and return what it said."""
        return self.once("--previews", code=code)


@pytest.fixture
def forged(shop: Shop, require: Callable[[str], str]) -> Iterator[Forged]:
    """Return a project at a forge."""
    require("git")
    double = GitHubDouble()
    try:
        yield Forged(shop, double)
    finally:
        double.close()


def test_a_pull_request_runs_and_a_push_adds_to_it(forged: Forged) -> None:
    forge = forged.forge
    number = forge.open_pull("more", forged.branch("more", jobs=2))
    assert f"previews: pull request {number}" in forged.preview()
    forged.wait_for_jobs(4)
    assert f"; previews: pull request {number}; it looked once" in forged.git_line()
    forge.pulls[number].commit = forged.branch("more", jobs=3)
    forged.preview()
    forged.wait_for_jobs(5)
    before = len(forge.asked)
    assert "revision" not in forged.preview() and len(forge.asked) == before + 1, "nothing is planned again"


def test_jobs_of_a_pull_request_that_is_closed_are_stopped(forged: Forged) -> None:
    shop, forge = forged.shop, forged.forge
    shop.ledger.hold()
    number = forge.open_pull("more", forged.branch("more", jobs=2))
    forged.preview()
    until(lambda: shop.jobs, "a job of it runs")
    forge.pulls[number].state = "closed"
    assert f"pr-{number}.digits: cancelled, as its pull request is closed" in forged.preview()
    until(lambda: not shop.jobs, "its jobs are stopped")
    assert "; previews: no pull request is open" in forged.git_line()


def test_a_running_sync_sees_a_push_at_once_and_an_unchanged_round_is_cheap(forged: Forged) -> None:
    shop, forge = forged.shop, forged.forge
    sync = forged.start("--previews")
    forged.wait_for(previews="no pull request is open")
    number = forge.open_pull("more", forged.branch("more", jobs=2))
    forged.wait_for(previews=f"pull request {number}")
    forged.wait_for_jobs(4)
    until(lambda: not shop.agents, "the agent has left")
    before = {path: path.stat().st_mtime_ns for path in forged.store.rglob("*") if path.is_file()}
    used, asked = forged.measure_cpu(sync), len(forge.asked)
    until(lambda: len(forge.asked) >= asked + 20, "it looks again and again, and asks the forge for a minute")
    each = (forged.measure_cpu(sync) - used) / (len(forge.asked) - asked)
    assert each <= 0.2, f"a round in which nothing changed takes {each:.3f} s of CPU"
    assert set(forge.asked[asked:]) == {("GET", f"/repos/{REPOSITORY}/pulls")}
    after = {path: path.stat().st_mtime_ns for path in forged.store.rglob("*") if path.is_file()}
    assert {path for path in after if before.get(path) != after[path]} <= set(forged.beats)
    forge.pulls[number].state = "closed"
    forged.wait_for(previews="no pull request is open")
    forged.stop(sync)
    assert shop.states(f"pr-{number}.digits") == {"succeeded": 2}


def test_a_fork_is_not_run_whatever_it_brings(forged: Forged) -> None:
    shop, forge = forged.shop, forged.forge
    commit = forged.branch("theirs", jobs=3)
    # Of a fork, by what the forge says, though a branch here has its commit.
    number = forge.open_pull("theirs", commit, is_fork=True)
    # And by where its commit is, though the forge says nothing: no branch here has it.
    hidden = forged.remote.git("commit-tree", f"{commit}^{{tree}}", "-m", "x", "-p", commit)
    forged.remote.git("push", "-q", "origin", f"{hidden}:refs/pull/2/head")
    other = forge.open_pull("theirs", hidden)
    said = forged.preview(code=1)
    assert f"pull request {number} of a fork, not run" in said
    assert f"pull request {other} (" in said and "failed: commit" in said
    assert f"pull request {number} of a fork, not run" in forged.git_line()
    assert shop.ledger.executions == 2 and [one["name"] for one in shop.json("list", "sweeps")] == ["plain"]


def lay_trap(root: Path, name: str, secret: Path) -> str:
    """Write what a hostile branch has beside its spec; return what its spec says besides."""
    if name == "greedy":
        stolen = "store: s3://x?endpoint=http://127.0.0.1:9\n"
        (root / "monkey.yaml").write_text(f"project: other\n{stolen}previews: {{jobs: 99}}\n")
    elif name == "linked":
        (root / "data").symlink_to(secret)
    elif name == "state":
        (root / ".monkey").symlink_to(secret.parent)
    elif name == "cached":
        (root / "deep" / ".dvc").mkdir(parents=True)
        (root / "deep" / ".dvc" / "config").write_text(f"[cache]\ndir = {secret.parent}\n")
    elif name == "dvc":
        (root / ".dvc").symlink_to("specs")
    return {"named": f"datasets: {{d: {secret}}}\n", "linked": "datasets: {d: data}\n"}.get(name, "")


def test_a_hostile_branch_raises_no_limit_and_reads_no_file_of_the_machine(forged: Forged, tmp_path: Path) -> None:
    shop, remote, forge = forged.shop, forged.remote, forged.forge
    secret, numbers = tmp_path / "secret", {}
    secret.write_text("sesame")
    for name in ("greedy", "named", "linked", "state", "cached", "dvc"):
        remote.git("checkout", "-q", "-B", name, "main")
        text = f"code: {{include: [job.py]}}\npriority: 1000\n{lay_trap(shop.root, name, secret)}"
        shop.spec(text, name="digits", jobs=30, seconds=0.06)
        remote.git("add", "-A", "-f")
        commit = remote.commit(push=False)
        remote.git("push", "-q", "origin", f"HEAD:{name}")
        numbers[name] = forge.open_pull(name, commit)
        remote.git("checkout", "-q", "main")
    said = forged.preview(code=1).replace("; pull", "\npull").splitlines()
    forged.wait_for_jobs(2 + 3)
    for name, why in (
        ("named", "files of the repository alone"),
        ("linked", "files of the repository alone"),
        ("cached", "expected DVC's settings as the base has them, found another deep/.dvc/config"),
        ("dvc", "expected DVC's settings as the base has them, found another .dvc"),
        ("state", "expected no link `.monkey` in the repository, found one"),
    ):
        assert any(f"pull request {numbers[name]} (" in line and why in line for line in said), (name, said)
    settings = shop.json("info", f"pr-{numbers['greedy']}.digits")["settings"]
    assert (settings["max_concurrent_jobs"], settings["priority"], settings["expires"]) == (2, -1000, 3600.0)
    assert not list(forged.store.glob("files/md5/*/*")), "nothing was sent"


def test_what_is_wrong_with_a_pull_request_or_the_forge_holds_up_no_commit(forged: Forged) -> None:
    forge = forged.forge
    forge.open_pull("more", forged.branch("more", jobs=2, text="comand: x\n"))
    said = forged.preview(code=1)
    assert "refused: specs/digits.yaml:5:1: unknown key 'comand'" in said
    forge.faults = [(500, {}, {"message": "sorry"})] * 8
    head = forged.push("plain", jobs=3)
    assert "previews: on hold: " in forged.preview(code=1) and forged.beat()["applied"] == head


def test_what_previews_need_is_said(forged: Forged) -> None:
    shop = forged.shop
    del shop.env["MONKEY_FORGE_TOKEN"]
    assert "on hold: expected a token for the forge in MONKEY_FORGE_TOKEN, found none" in forged.preview(code=1)
    shop.env["MONKEY_FORGE_TOKEN"] = "token"
    del shop.env["MONKEY_TRUSTED_ENDPOINTS"]
    head, asked = forged.push("plain", jobs=2, text="priority: 1\n"), len(forged.forge.asked)
    said = forged.preview(code=1)
    assert "previews: on hold: monkey.yaml:4:28: credentials for the forge would go to " in said
    assert "^" not in said and "if you trust it, set MONKEY_TRUSTED_ENDPOINTS=" in said
    assert forged.beat()["applied"] == head and len(forged.forge.asked) == asked, "the branch is followed"
    shop.env["MONKEY_TRUSTED_ENDPOINTS"] = forged.forge.url
    text = (shop.root / "monkey.yaml").read_text().replace(f"previews: {LIMITS}\n", "")
    (shop.root / "monkey.yaml").write_text(text)
    forged.push("plain", jobs=3)
    assert "on hold: expected `previews:` in the branch's monkey.yaml" in forged.preview(code=1)


def test_a_pull_request_that_went_back_to_an_older_commit_is_refused(forged: Forged) -> None:
    shop, forge, git = forged.shop, forged.forge, forged.remote.git
    old = forged.branch("more", jobs=1)
    git("checkout", "-q", "more")
    shop.spec(name="digits", jobs=2, seconds=0.06)
    new = forged.remote.commit(push=False)
    git("push", "-q", "origin", "more")
    git("checkout", "-q", "main")
    number = forge.open_pull("more", new)
    forged.preview()
    git("push", "-q", "--force", "origin", f"{old}:more", f"{new}:refs/heads/kept")
    forge.pulls[number].commit = old
    assert f"pull request {number} ({old[:10]}) refused: pr-{number}.digits: last applied by " in forged.preview(code=1)
