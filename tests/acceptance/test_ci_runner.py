"""In CI: what would be gone with the runner is refused before anything is made, and a runner's own files stay there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop


@pytest.fixture
def runner(shop: Shop) -> Shop:
    """Return a project in a repository, as CI checks it out."""
    shop.spec(jobs=1)
    shop.env["CI"] = "true"
    subprocess.run(["git", "init", "-q", shop.root], env=shop.env, check=True)
    return shop


@pytest.mark.parametrize("words", ["apply --detach --yes", "run --detach -- true"])
def test_what_would_be_gone_with_the_runner_is_not_detached(runner: Shop, store: Path, words: str) -> None:
    done = runner.run(*words.split(), code=125 if "run" in words else 1)
    assert f"expected a store that stays, found {store} on this runner's own disk" in done.stderr
    assert "this runner will be gone; use ssh, aws, gcp, or `apply` without --detach" in done.stderr
    assert "agent started" not in done.stdout
    assert not store.exists()


def test_what_is_watched_to_its_end_is_applied(runner: Shop) -> None:
    assert "its job succeeded" in runner.run("apply").stdout


def test_data_outside_of_the_repository_is_refused(runner: Shop, tmp_path: Path) -> None:
    (tmp_path / "loot").write_text("hunter2")
    runner.spec(f"datasets: {{loot: {tmp_path}/loot}}\n", jobs=1)
    for words in (["plan", "--no-store"], ["push"], ["apply"]):
        said = runner.run(*words, code=1).stderr
        assert "specs/sweep.yaml:" in said
        assert "CI and previews send files of the repository alone" in said
    del runner.env["CI"]
    runner.run("plan")
