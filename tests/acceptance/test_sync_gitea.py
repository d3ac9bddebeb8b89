"""`monkey sync` and a real Gitea: previews of its pull requests, and a server that is away."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.follower import Follower
from tests.acceptance.shop import Shop, until
from tests.forges.gitea import Gitea, GiteaRepository, serve_gitea

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("MONKEY_LONG"))

BASE = """project: shop
store: {store}
providers: {{local: {{idle_timeout: 1s}}}}
forge: {{type: gitea}}
previews: {{jobs: 4, max_concurrent_jobs: 2, expires: 1h}}
"""


class Hosted(Follower):
    """A follower whose repository is at a Gitea."""

    def __init__(self, shop: Shop, gitea: Gitea) -> None:
        """Make the repository, and push a base that allows previews, with one sweep."""
        super().__init__(shop)
        self.gitea, self.owner = gitea, gitea.make_person("sweeper")
        self.repository: GiteaRepository = gitea.make_repository(self.owner)
        self.url = self.repository.clone_url()
        self.remote.git("remote", "set-url", "origin", self.url)
        (shop.root / "monkey.yaml").write_text(BASE.format(store=self.store))
        # All that it needs: to read pull requests.
        shop.env["MONKEY_FORGE_TOKEN"] = gitea.make_token(self.owner.name, "read:repository")
        self.push("plain", jobs=2)

    def follow(self, *options: str) -> subprocess.Popen[Any]:
        """Start a sync of the repository at Gitea."""
        return self.start(self.url, "--previews", *options)

    def push_branch(self, name: str, jobs: int, spec: str = "digits") -> None:
        """Push a branch whose spec has so many jobs."""
        self.remote.git("checkout", "-q", "-B", name)
        self.shop.spec(name=spec, jobs=jobs, seconds=0.06 if spec == "digits" else 0.07)
        self.remote.commit(push=False)
        self.remote.git("push", "-q", "--force", "origin", f"HEAD:{name}")
        self.remote.git("checkout", "-q", "main")


def test_pull_requests_run_and_end_and_those_of_forks_do_not_run(
    shop: Shop, gitea: Gitea, require: Callable[[str], str]
) -> None:
    require("git")
    hosted = Hosted(shop, gitea)
    repository = hosted.repository
    sync = hosted.follow()
    hosted.wait_for_jobs(2)
    hosted.push_branch("more", jobs=2)
    number = repository.open_pull("more")
    hosted.wait_for_jobs(4)
    hosted.push_branch("more", jobs=3)
    hosted.wait_for_jobs(5)
    fork = repository.fork(gitea.make_person("outsider"))
    fork.write_file("specs/theirs.yaml", (shop.root / "specs" / "plain.yaml").read_text() + "timeout: 1h\n", "main")
    theirs = repository.open_fork_pull(fork, "main")
    hosted.push_branch("other", jobs=3, spec="other")  # which has the forge asked again
    hosted.wait_for(previews=f"pull request {number}; pull request {theirs} of a fork, not run")
    # Merged: what the preview finished is kept, and the rest runs.
    hosted.push_branch("more", jobs=4)
    hosted.wait_for_jobs(6)
    repository.merge(number, "squash")
    until(lambda: "digits" in [one["name"] for one in shop.json("list", "sweeps")], "the merge is applied")
    until(lambda: shop.states("digits") == {"succeeded": 4}, "its jobs are done")
    assert shop.ledger.executions == 6
    # Closed while it runs.
    shop.ledger.hold()
    closed = repository.open_pull("other")
    hosted.push_branch("other", jobs=4, spec="other")
    until(lambda: len(shop.jobs) == 2, "as many of its jobs run as previews may run at once")
    repository.close_pull(closed)
    until(lambda: not shop.jobs, "they are stopped")
    hosted.wait_for(previews=f"pull request {theirs} of a fork, not run")
    hosted.stop(sync)
    shop.ledger.release()
    names = {one["name"] for one in shop.json("list", "sweeps")}
    assert names == {"plain", "digits", f"pr-{number}.digits", f"pr-{closed}.other"}
    assert f"pull request {closed} was closed" in shop.run("info", f"pr-{closed}.other").stdout


def test_a_sync_posts_results_once(shop: Shop, gitea: Gitea, require: Callable[[str], str]) -> None:
    require("git")
    hosted = Hosted(shop, gitea)
    repository = hosted.repository
    shop.env["MONKEY_FORGE_TOKEN"] = hosted.owner.token
    hosted.push_branch("more", jobs=2)
    number = repository.open_pull("more")
    commit = repository.merge(number, "squash")
    hosted.once(hosted.url, "--notify")
    hosted.wait_for_jobs(4)  # with the two of the base
    until(lambda: shop.states("digits") == {"succeeded": 2}, "its jobs are done")
    assert f"digits: finished, posted at {gitea.url}" in hosted.once(hosted.url, "--notify")
    assert "posted" not in hosted.once(hosted.url, "--notify")
    marks = [comment["body"].partition("\n")[0] for comment in repository.list_comments(number)]
    assert sorted(marks) == [f"<!-- monkey:results:shop:{sweep} -->" for sweep in ("digits", "plain")]
    assert [one["status"] for one in repository.list_statuses(commit, "monkey/digits")][:1] == ["success"]
    # A token that may only read posts nothing, which is said, and holds up no commit.
    shop.env["MONKEY_FORGE_TOKEN"] = gitea.make_token(hosted.owner.name, "read:repository")
    hosted.remote.git("pull", "-q", "--ff-only", "origin", "main")
    hosted.push("plain", jobs=3)
    assert "news are not posted: " in hosted.once(hosted.url, "--notify", code=1)
    hosted.wait_for_jobs(5)


def test_a_server_that_is_away_is_said_and_followed_once_it_is_back(
    shop: Shop, require: Callable[[str], str], tmp_path: Path
) -> None:
    """With MONKEY_LONG=1 it is away for ten minutes, and the sync looks once a minute, as it does by default."""
    require("git")
    (tmp_path / "gitea").mkdir()
    with serve_gitea(tmp_path / "gitea") as server:
        hosted = Hosted(shop, server)
        sync = hosted.follow("--interval", "60s" if LONG else "0.2s")
        hosted.wait_for_jobs(2)
        hosted.wait_for(outcome="applied", previews="no pull request is open")
        server.stop()
        began, before = time.monotonic(), hosted.measure_cpu(sync)
        for minute in (1, 5, 10) if LONG else (0,):
            time.sleep(max(0.0, began + 60 * minute - time.monotonic()))
            hosted.wait_for(outcome="away")
            line = hosted.git_line()
            print(f"minute {minute}: {hosted.measure_cpu(sync) - before:.2f} s of CPU, {line}")
            assert "; the remote is away for " in line and "dead" not in line and "its last look" not in line
        server.serve()
        shown, back = hosted.measure_cpu(sync) - before, time.monotonic()
        hosted.push("plain", jobs=3)
        hosted.wait_for_jobs(3)
        hosted.wait_for(outcome="applied", problem="")
        print(f"away for {back - began:.0f} s: {shown:.2f} s of CPU; followed {time.monotonic() - back:.1f} s later")
        hosted.stop(sync)
