"""The first statuses, as `apply` sets them in CI: nothing is asked without a run and its token, and nothing fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.apply.world.world import World
from monkey.cli.review.sweep_statuses import open_news_forge, set_first_statuses
from monkey.errors import EndpointRefused, ForgeError
from monkey.results.posting.publish_news import publish_news
from monkey.spec.project.project import load_project
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
        await set_first_statuses(world, {"CI": "1", "GITHUB_TOKEN": TOKEN})
        await set_first_statuses(world, run)
        assert not double.asked
        double.roles[BOT] = "read"
        await set_first_statuses(world, {**run, "GITHUB_TOKEN": TOKEN})
        assert "warning: no status of small was set: " in capsys.readouterr().err
        double.roles[BOT] = "write"
        await set_first_statuses(world, {**run, "GITHUB_TOKEN": TOKEN})
        assert statuses(double) == [("pending", "0/3")] and not capsys.readouterr().err

    live(tmp_path, story)


def test_outside_of_ci_news_go_to_the_forge_that_monkey_yaml_names(
    tmp_path: Path,
    double: GitHubDouble,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = {"HOME": str(tmp_path / "home")}

    async def story(world: World) -> None:
        await stand_at(world, COMMIT)
        said = f"forge: {{type: github, api: '{double.url}', repository: {REPOSITORY}}}\n"
        said += "notify: {forge: TOKEN_OF_AGENTS}\n"
        (world.project.root / "monkey.yaml").write_text(f"project: test\n{said}")
        project = load_project(world.project.root)
        with pytest.raises(EndpointRefused, match="credentials for the forge would go to"):
            open_news_forge(project, home)
        monkeypatch.setenv("MONKEY_TRUSTED_ENDPOINTS", double.url)
        with pytest.raises(ForgeError, match="expected a token for the forge") as caught:
            open_news_forge(project, home)
        assert "MONKEY_FORGE_TOKEN or GITHUB_TOKEN" in (caught.value.hint or "")
        for environ in ({"TOKEN_OF_AGENTS": TOKEN}, {"MONKEY_FORGE_TOKEN": TOKEN}):
            forge, repository = open_news_forge(project, {**home, **environ})
            double.statuses.clear()
            assert (await publish_news(world, forge, repository)).outcomes.keys() == {"small"}
            assert statuses(double) == [("pending", "0/3")]
        with pytest.raises(ForgeError, match="does not know the token") as caught:
            open_news_forge(project, {**home, "TOKEN_OF_AGENTS": "wrong"}).forge.name_author()
        assert "put a new one into the secret TOKEN_OF_AGENTS of `notify:`" in (caught.value.hint or "")

    live(tmp_path, story)
