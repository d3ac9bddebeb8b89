"""The first statuses, as `apply` sets them in CI: nothing is asked without a run and its token, and nothing fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.apply.world.world import World
from monkey.cli.review.sweep_statuses import set_first_statuses
from tests.forges.github_double import BOT, REPOSITORY, GitHubDouble
from tests.unit.results.posting.test_publish_news import COMMIT, TOKEN, double, live, stand_at, statuses  # noqa: F401


def test_a_run_with_a_token_sets_them_and_no_other_does(
    tmp_path: Path,
    double: GitHubDouble,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = {"CI": "1", "GITHUB_ACTIONS": "true", "GITHUB_API_URL": double.url, "GITHUB_REPOSITORY": REPOSITORY}

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        await set_first_statuses(world, {})
        await set_first_statuses(world, run)
        assert not double.asked
        double.roles[BOT] = "read"
        await set_first_statuses(world, {**run, "GITHUB_TOKEN": TOKEN})
        assert "warning: no status of small was set: " in capsys.readouterr().err
        double.roles[BOT] = "write"
        await set_first_statuses(world, {**run, "GITHUB_TOKEN": TOKEN})
        assert statuses(double) == [("pending", "0/3")] and not capsys.readouterr().err

    live(tmp_path, story)
