"""`monkey notify` at a real Gitea: what comes back to a pull request, how often, and after kill -9."""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.acceptance.shop import Shop
from tests.acceptance.test_gitea import Clone
from tests.forges.forge_proxy import ForgeProxy, serve_proxy
from tests.forges.gitea import Gitea

pytestmark = [pytest.mark.slow, pytest.mark.needs("gitea")]

MARK = "<!-- monkey:results:shop:sweep -->"
#: Kills of `monkey notify`, one at each request and again.
KILLS = 20


@pytest.fixture
def proxy(gitea: Gitea) -> Iterator[ForgeProxy]:
    with serve_proxy(gitea.url) as state:
        yield state


class Ci:
    """The shop as a clone at Gitea, and the scheduled runs of its CI."""

    def __init__(self, shop: Shop, gitea: Gitea, proxy: ForgeProxy) -> None:
        self.shop, self.proxy = shop, proxy
        self.repository = gitea.make_repository(gitea.make_person("ann"))
        self.clone = Clone(shop, self.repository)
        (shop.root / ".gitignore").write_text(".monkey\n")
        self.variables = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITEA_ACTIONS": "true",
            "GITHUB_API_URL": f"{proxy.url}/api/v1",
            "GITHUB_REPOSITORY": self.repository.name,
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_REF_NAME": "main",
            "GITHUB_TOKEN": gitea.make_token("ann"),
        }

    def merge(self, branch: str) -> tuple[int, str, str]:
        """Push a branch, open its pull request, merge it; return its number, its head, and the commit on main."""
        head = self.clone.push(branch, branch)
        number = self.repository.open_pull(branch)
        commit = self.repository.merge(number, "squash")
        self.clone.git("fetch", "--quiet", "origin")
        self.clone.git("reset", "--quiet", "--hard", "origin/main")
        assert self.clone.git("rev-parse", "HEAD") == commit
        return number, head, commit

    @contextlib.contextmanager
    def _as_ci(self) -> Iterator[None]:
        self.shop.env |= self.variables
        try:
            yield
        finally:
            for name in self.variables:
                del self.shop.env[name]

    def notify(self) -> str:
        """Run it to its end; return what it prints."""
        with self._as_ci():
            return self.shop.run("notify").stdout

    def start_notify(self) -> subprocess.Popen[str]:
        """Start it."""
        with self._as_ci():
            return self.shop.start("notify")

    def statuses(self, commit: str, sweep: str = "sweep") -> list[tuple[str, str]]:
        """Return a commit's statuses for the sweep, the oldest first."""
        found = self.repository.list_statuses(commit, f"monkey/{sweep}")
        return [(each["status"], each["description"]) for each in reversed(found)]

    def comments(self, number: int) -> list[str]:
        """Return the pull request's comments."""
        return [each["body"] for each in self.repository.list_comments(number)]


@pytest.fixture
def ci(shop: Shop, gitea: Gitea, proxy: ForgeProxy) -> Ci:
    return Ci(shop, gitea, proxy)


def test_results_come_back_once_and_statuses_say_how_far_it_is(ci: Ci) -> None:
    shop = ci.shop
    shop.spec(jobs=3)
    number, head, commit = ci.merge("first")
    shop.ledger.hold()
    shop.run("apply", "--detach")
    ci.notify()
    assert ci.statuses(commit) == ci.statuses(head) == [("pending", "0/3")]
    assert not ci.comments(number)
    # The next commit asks for more before the first is done.
    shop.spec(jobs=5)
    between = ci.clone.push("main", "CI runs for the next one alone")
    shop.spec(jobs=4)
    later, _, newest = ci.merge("second")
    shop.run("apply", "--detach", "--yes")
    ci.notify()
    assert ci.statuses(commit)[-1] == ("failure", f"superseded by {newest[:10]} at 0/3")
    assert ci.statuses(between) == [("failure", f"superseded by {newest[:10]}")]
    assert ci.statuses(newest)[-1][0] == "pending"
    shop.ledger.release()
    shop.run("status", "-w", "sweep")
    said = ci.notify()
    assert "sweep: finished (4 succeeded)" in said
    assert ci.statuses(newest)[-1] == ("success", "4 succeeded")
    [comment] = ci.comments(later)
    assert comment.startswith(f"{MARK}\n### monkey: sweep `sweep` has finished") and not ci.comments(number)
    # Without news, nothing is sent.
    before = len(ci.proxy.writes)
    assert ci.notify() == "No news.\n"
    assert len(ci.proxy.writes) == before


def test_one_comment_comes_however_often_it_is_killed(ci: Ci) -> None:
    ci.shop.spec(jobs=1)
    number, head, commit = ci.merge("first")
    ci.shop.run("apply")
    killed = 0
    for at, late in itertools.islice(itertools.cycle(itertools.product(range(1, 13), (False, True))), KILLS):
        ci.proxy.reset()
        process = ci.start_notify()

        def kill(number: int, at: int = at, process: subprocess.Popen[str] = process) -> None:
            if number == at:
                process.send_signal(signal.SIGKILL)

        ci.proxy.before, ci.proxy.after = ((lambda number: None), kill) if late else (kill, lambda number: None)
        process.communicate(timeout=120)
        killed += process.returncode == -signal.SIGKILL
        assert len(ci.comments(number)) <= 1
    ci.proxy.reset()
    ci.notify()
    assert killed >= 10, "it is killed where there is something to kill"
    [comment] = ci.comments(number)
    assert comment.startswith(MARK)
    assert {*ci.statuses(commit), *ci.statuses(head)} == {("success", "1 succeeded")}
    before = len(ci.proxy.writes)
    ci.notify()
    assert len(ci.proxy.writes) == before
