"""`git clean -fdx` takes all that is ignored; the default store, with all results, is spared."""

from __future__ import annotations

import subprocess

import pytest

from tests.acceptance.shop import Shop


def git(shop: Shop, *words: str) -> str:
    """Run git as the shop's people do, and return what it prints."""
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    done = subprocess.run(["git", *who, *words], cwd=shop.root, env=shop.env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def checkout(shop: Shop) -> Shop:
    git(shop, "init", "-q")
    shop.spec(jobs=2)
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "first")
    return shop


def test_results_outlive_a_clean_checkout(checkout: Shop) -> None:
    checkout.run("apply")
    before = checkout.run("results", "sweep", "--csv").stdout
    # Its own files are in nobody's way.
    assert git(checkout, "status", "--short") == ""
    git(checkout, "add", "-A")
    assert git(checkout, "ls-files", ".monkey") == ""
    (checkout.root / "scratch").mkdir()
    (checkout.root / "scratch" / "file").touch()
    assert "Skipping repository .monkey/store" in git(checkout, "clean", "-fdx")
    assert not (checkout.root / "scratch").exists()
    git(checkout, "add", "-A")
    assert git(checkout, "status", "--short") == ""
    assert checkout.run("results", "sweep", "--csv").stdout == before
    assert checkout.run("plan").stdout.startswith("No changes")
    checkout.run("apply")
    assert git(checkout, "status", "--short") == ""
    assert checkout.ledger.executions == 2
    assert "All is well" in checkout.run("doctor").stdout


def test_what_git_looks_past_is_added_to(checkout: Shop) -> None:
    exclude = checkout.root / ".git/info/exclude"
    exclude.write_bytes(b"/caf\xe9\n*.local")
    exclude.chmod(0o664)
    checkout.run("apply")
    assert exclude.read_bytes() == b"/caf\xe9\n*.local\n.monkey/\n"
    assert exclude.stat().st_mode & 0o777 == 0o664
    assert "Skipping repository .monkey/store" in git(checkout, "clean", "-fdx")


def test_a_directory_that_is_no_checkout_gets_no_repository(shop: Shop) -> None:
    shop.spec(jobs=1)
    shop.run("apply")
    assert not (shop.root / ".monkey/store/.git").exists()
