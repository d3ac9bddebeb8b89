"""A plan's digest as consent, and specs that leave git: a real repository, a store in a directory, real jobs."""

from __future__ import annotations

import re

from tests.acceptance.shop import Shop, until
from tests.git_command import git


def commit(shop: Shop, text: str) -> str:
    """Commit all that is there, and return the commit."""
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-qm", text, "--allow-empty")
    return git(shop.root, "rev-parse", "HEAD")


def begin(shop: Shop) -> None:
    """Make a repository with two sweeps, `a` finished, and a job of `b` that runs."""
    git(shop.root, "init", "-q")
    (shop.root / ".gitignore").write_text(".monkey/\n")
    shop.spec(name="a", jobs=2)
    commit(shop, "a")
    shop.run("apply")
    shop.ledger.hold()
    shop.spec(name="b", jobs=1, text="parameters: {i: [7]}\n")
    commit(shop, "b")
    shop.run("apply", "--detach")
    until(lambda: shop.ledger.executions == 3, "b's job runs")
    until(lambda: shop.states("b") == {"running": 1}, "its agent says so")


def digest(shop: Shop, *arguments: str) -> str:
    """Return the last line's digest."""
    last = shop.run("plan", *arguments).stdout.splitlines()[-1]
    found = re.fullmatch(r"Digest: ([0-9a-f]{16})", last)
    assert found, last
    return found[1]


def test_expected_digest_is_consent_to_that_plan_and_to_no_other(shop: Shop) -> None:
    begin(shop)
    nothing = digest(shop)
    # Another job in the place of the one that runs, and other code.
    shop.spec(name="b", jobs=1, text="parameters: {i: [8]}\ncode: {include: [job.py]}\n")
    agreed = digest(shop)
    assert agreed != nothing
    shop.run("plan", "-o", "plan.json")
    # Commits that change no code, orders, and what others apply leave it as it is.
    (shop.root / "README.md").write_text("read me, too\n")
    commit(shop, "no change of code")
    shop.run("pause", "b")
    until(lambda: not shop.jobs, "it was stopped")
    shop.run("resume", "b")
    assert digest(shop) == agreed
    until(lambda: shop.ledger.executions == 4, "it runs again")
    until(lambda: shop.states("b") == {"running": 1}, "its agent says so")
    assert "would stop 1 running job" in shop.run("apply", "--detach", code=1).stderr
    assert "expected 16 hexadecimal digits" in shop.run("apply", "--expect", "main", code=1).stderr
    refused = shop.run("apply", "--detach", "--expect", nothing, code=3).stderr
    assert nothing in refused and agreed in refused and "sweep b: 1 new" in refused
    assert shop.json("plan")["digest"] == agreed, "what is refused changes nothing"
    shop.run("apply", "plan.json", "--detach", "--expect", agreed)
    assert "applied already" in shop.run("apply", "plan.json", code=1).stderr
    assert digest(shop) == nothing
    again = shop.run("apply", "--detach", "--expect", agreed).stdout
    assert f"The plan {agreed} was applied already: b (revision 4)." in again, "a run of CI may be repeated"
    shop.spec(name="a", jobs=3)
    refused = shop.run("apply", "--detach", "--expect", agreed, code=3).stderr
    assert "sweep a: 1 new" in refused and "a part of the expected plan was applied already: b (revision 4)" in refused
    shop.ledger.release()
    shop.run("apply")


def test_spec_that_left_git_is_told_and_pruned_and_comes_back(shop: Shop) -> None:
    begin(shop)
    (shop.root / "specs" / "b.yaml").unlink()
    gone = commit(shop, "b is no longer wanted")
    told = shop.run("plan", "--detailed-exitcode").stdout
    assert "  - sweep b: its spec is gone (1 running)\n  ! sweep b continues: --prune cancels it" in told
    applied = shop.run("apply", "--detach")
    assert "Nothing to change." in applied.stdout and "sweep b continues: --prune cancels it" in applied.stderr
    assert shop.states("b") == {"running": 1}
    shop.run("plan", "--prune", "--detailed-exitcode", code=2)
    assert "cancel b, whose spec is gone" in shop.run("apply", "--prune", "--detach", code=1).stderr
    assert "exclude each other" in shop.run("apply", "--prune", "specs/a.yaml", code=1).stderr
    assert shop.json("plan", "specs/a.yaml")["gone"] == [], "a plan for some specs says nothing of the others"
    agreed = digest(shop, "--prune")
    assert agreed != digest(shop)
    shop.run("apply", "--prune", "--detach", "--expect", agreed)
    until(lambda: shop.states("b") == {"cancelled": 1}, "b is cancelled")
    assert f"its spec left git (commit {gone[:10]})" in shop.run("info", "b").stdout
    assert "gone" not in shop.run("plan").stdout, "what is cancelled is told no more"
    git(shop.root, "revert", "--no-edit", "HEAD")
    shop.run("apply", "--detach")
    shop.ledger.release()
    shop.run("apply")
    assert shop.states("b") == {"succeeded": 1}


def test_sweeps_of_other_branches_and_of_run_are_not_pruned(shop: Shop) -> None:
    begin(shop)
    shop.run("run", "--detach", "--name", "once", "--", "sleep", "600")
    git(shop.root, "checkout", "-qb", "feature")
    (shop.root / "specs" / "b.yaml").unlink()
    commit(shop, "not here")
    assert shop.json("plan", "--prune")["gone"] == []
    git(shop.root, "checkout", "-q", "--detach")
    (found,) = shop.json("plan", "--prune")["gone"]
    assert (found["name"], found["pruned"]) == ("b", False) and "unknown" in found["kept"]
    # On a pull request, the branch that counts is the one that it will be merged into.
    shop.env |= {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "feature"}
    assert [one["pruned"] for one in shop.json("plan", "--prune")["gone"]] == [True]
    (shop.root / "specs" / "a.yaml").unlink()
    assert "there is no spec" in shop.run("apply", "--prune", "--yes", code=1).stderr
    shop.run("cancel", "once")
    shop.ledger.release()


def test_plan_of_what_a_branch_changes_and_of_its_merge(shop: Shop) -> None:
    git(shop.root, "init", "-q")
    (shop.root / ".gitignore").write_text(".monkey/\n")
    for name in ("a", "b", "c"):
        shop.spec(name=name, jobs=2)
    base = commit(shop, "three")
    git(shop.root, "checkout", "-qb", "feature")
    shop.spec(name="b", jobs=3)
    (shop.root / "specs" / "c.yaml").unlink()
    commit(shop, "more of b, and no c")
    since = shop.json("plan", "--changed-since", "main")
    assert [sweep["name"] for sweep in since["sweeps"]] == ["b"]
    assert "commit `" in shop.run("plan", "--changed-since", base, "--markdown").stdout.splitlines()[-1]
    git(shop.root, "checkout", "-q", "main")
    shop.spec(name="a", jobs=5)
    commit(shop, "more of a")
    git(shop.root, "checkout", "-q", "feature")
    onto = digest(shop, "--onto", "main")
    assert onto != digest(shop)
    assert "exclude each other" in shop.run("plan", "--onto", "main", "--changed-since", "main", code=1).stderr
    assert "exclude each other" in shop.run("plan", "--onto", "main", "specs/a.yaml", code=1).stderr
    git(shop.root, "checkout", "-q", "main")
    git(shop.root, "merge", "-q", "--no-edit", "feature")
    assert digest(shop) == onto, "what was agreed to on the branch is what an apply after the merge does"
    assert shop.run("validate").stdout == "2 specs are valid: 8 jobs\n"
    git(shop.root, "checkout", "-qb", "apart", base)
    shop.spec(name="b", jobs=9)
    commit(shop, "less of b")
    assert "HEAD cannot be merged into main: specs/b.yaml" in shop.run("plan", "--onto", "main", code=1).stderr
