"""`monkey apply --approved` in the CI run after a merge; the forge is a double of GitHub."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.acceptance.shop import Shop
from tests.bucket import FakeBucket
from tests.bucket.dialect import Request
from tests.forges.ci import pull_environment, push_environment
from tests.forges.github_double import BOT, REPOSITORY, GitHubDouble
from tests.trusting import trust

pytestmark = pytest.mark.slow

TOKEN = "ghs_0123456789abcdefghijklmn"
HEAD, MERGE = "1" * 40, "2" * 40


class Merge:
    """A shop, and pull request 1 of it."""

    def __init__(self, shop: Shop, double: GitHubDouble, base: Path) -> None:
        self.shop, self.double, self.base = shop, double, base
        self.plain = dict(shop.env)
        shop.hurry()

    def plan(self) -> None:
        """Plan in the pull request's run."""
        at = pull_environment(self.base, self.double.url, REPOSITORY, 1, HEAD, token=TOKEN)
        self.shop.env = {**self.plain, **at}
        self.shop.run("plan", "--comment")

    def apply(self, code: int = 0, token: str = TOKEN, *, merged: bool = True) -> str:
        """Merge, apply in the run of the merge, and return what it printed on stderr."""
        if merged:
            self.double.merge(1, MERGE)
        at = push_environment(self.base, self.double.url, REPOSITORY, MERGE, token=token)
        self.shop.env = {**self.plain, **at}
        return self.shop.run("apply", "--approved", code=code).stderr

    @property
    def status(self) -> tuple[str, str]:
        """What the merge's status says."""
        found = [each for each in self.double.statuses if (each["sha"], each["context"]) == (MERGE, "monkey/apply")]
        return found[-1]["state"], found[-1]["description"]

    @property
    def asked(self) -> list[str]:
        """Comments by which a person is asked."""
        found = [comment["body"] for comment in self.double.pulls[1].comments.values()]
        return [body for body in found if body.startswith("<!-- monkey:apply:shop -->")]


@pytest.fixture
def double() -> Iterator[GitHubDouble]:
    made = GitHubDouble()
    made.users[TOKEN], made.roles[BOT] = BOT, "write"
    made.open_pull("change", HEAD)
    yield made
    made.close()


@pytest.fixture
def merge(shop: Shop, double: GitHubDouble, tmp_path: Path) -> Merge:
    return Merge(shop, double, tmp_path)


def applied_before(merge: Merge) -> None:
    """Let a sweep of two jobs be applied and finished."""
    merge.shop.spec(jobs=2)
    merge.shop.run("apply")
    assert merge.shop.ledger.executions == 2


def test_what_was_agreed_to_is_applied_without_another_question(merge: Merge) -> None:
    applied_before(merge)
    # It runs finished jobs again, which needs consent: the merge is that.
    merge.shop.spec(jobs=2, seconds=0.06)
    merge.plan()
    merge.apply()
    assert merge.shop.ledger.executions == 4
    state, said = merge.status
    assert state == "success" and re.fullmatch(r"[0-9a-f]{16} applied", said)
    assert not merge.asked
    # The run is repeated, as CI's button does.
    merge.apply()
    assert merge.status == ("success", "nothing to change") and merge.shop.ledger.executions == 4


def test_another_plan_is_applied_where_it_harms_no_one(merge: Merge) -> None:
    applied_before(merge)
    merge.shop.spec(jobs=3)
    merge.plan()
    merge.shop.spec(jobs=5)
    merge.apply()
    assert merge.shop.ledger.executions == 5 and merge.status[0] == "success" and not merge.asked


def test_what_needs_consent_waits_and_is_asked_for(merge: Merge) -> None:
    applied_before(merge)
    merge.shop.spec(jobs=3)
    merge.plan()
    merge.shop.spec(jobs=3, seconds=0.06)
    merge.shop.spec(jobs=2, seconds=0.07, name="other")
    said = merge.apply(code=3)
    # Those of the other sweep ran, and none of this one.
    assert merge.shop.ledger.executions == 4
    assert "sweep sweep waits: it runs 2 finished jobs again" in said
    state, text = merge.status
    found = re.fullmatch(r"([0-9a-f]{16}) waits for a person: sweep", text)
    assert state == "failure" and found
    [ask] = merge.asked
    assert "- `sweep` runs 2 finished jobs again" in ask and f"`monkey apply --expect {found[1]}`" in ask
    assert "`other`" not in ask and merge.status[1].startswith(found[1])
    # The run is repeated: it asks for the same, in the same comment.
    merge.apply(code=3)
    [again] = merge.asked
    assert found[1] in again and merge.status == (state, text) and merge.shop.ledger.executions == 4


def test_a_digest_that_another_author_set_is_no_consent(merge: Merge) -> None:
    applied_before(merge)
    merge.shop.spec(jobs=2, seconds=0.06)
    merge.plan()
    [made] = [each for each in merge.double.statuses if each["context"] == "monkey/plan"]
    made["creator"] = {"login": "alice"}
    merge.apply(code=3)
    assert "found none" in merge.asked[0] and merge.shop.ledger.executions == 2


def test_a_push_without_a_pull_request_agrees_to_nothing(merge: Merge) -> None:
    applied_before(merge)
    merge.shop.spec(jobs=2, seconds=0.06)
    said = merge.apply(code=3, merged=False)
    assert "no pull request brought this commit" in said and "runs 2 finished jobs again" in said
    assert merge.shop.ledger.executions == 2 and merge.status[0] == "failure"
    assert "### monkey apply: waits for a person" in (merge.base / "summary.md").read_text()


def test_without_a_token_nothing_is_applied(merge: Merge) -> None:
    merge.shop.spec(jobs=2)
    said = merge.apply(code=1, token="")
    assert "no token is here" in said and "GITHUB_TOKEN" in said
    assert merge.shop.ledger.executions == 0 and not merge.double.statuses


def test_an_apply_that_fails_says_so_in_the_status(merge: Merge) -> None:
    merge.shop.spec("parameterz: {}\n", jobs=2)
    merge.apply(code=1)
    state, said = merge.status
    assert state == "failure" and said.startswith("specs/sweep.yaml:")


def test_where_another_apply_comes_first_it_plans_again(
    shop: Shop, double: GitHubDouble, bucket: FakeBucket, tmp_path: Path
) -> None:
    shop.env |= {**services.KEYS, "MONKEY_STORE": bucket.url()}
    trust(bucket.endpoint, env=shop.env)
    merge, rivals = Merge(shop, double, tmp_path), list[str]()
    applied_before(merge)
    shop.spec(jobs=3)
    merge.plan()

    def come_first(request: Request) -> None:
        if request.if_absent and "/sweeps/" in request.key and not rivals:
            rivals.append(request.key)
            # From a clone: ours may ask again meanwhile, and read its own specs.
            rival = copy.copy(shop)
            rival.root, rival.env = tmp_path / "rival", merge.plain
            shutil.copytree(shop.root, rival.root)
            rival.spec(jobs=4)
            rival.run("apply")

    bucket.before = come_first
    said = merge.apply()
    assert rivals and "changed by somebody else while this plan was being applied: it is planned again" in said
    assert merge.status[0] == "success" and re.fullmatch(r"[0-9a-f]{16} applied", merge.status[1])
    # What the merge wants is what there is, whoever ran it.
    assert shop.ledger.executions == 4 and not merge.asked
    shop.env = merge.plain
    assert shop.run("plan", "--detailed-exitcode").returncode == 0
