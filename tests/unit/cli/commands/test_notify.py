"""`monkey notify` at a forge that is silent, and of sweeps that are of another repository."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from monkey.apply.world.world import World
from monkey.cli.main import run_guarded
from tests.forges.github_double import REPOSITORY, GitHubDouble
from tests.unit.results.posting.test_publish_news import COMMIT, TOKEN, double, live, stand_at  # noqa: F401


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "p"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MONKEY_FORGE_TOKEN", TOKEN)
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    root.mkdir()
    monkeypatch.chdir(root)
    return root


def stand(root: Path, **git: object) -> None:
    """Have a sweep there, applied from a commit."""

    async def story(world: World) -> None:
        await stand_at(world, COMMIT, **git)

    live(root, story)


def name_forge(root: Path, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "monkey.yaml").write_text(
        f"project: test\nforge: {{type: github, api: '{api}', repository: {REPOSITORY}}}\n"
    )
    monkeypatch.setenv("MONKEY_TRUSTED_ENDPOINTS", api)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("remote", ["", "/srv/other.git"])
def test_a_signal_does_not_wait_for_a_forge_that_is_silent(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], remote: str, number: int
) -> None:
    """With a remote of another repository, it is the list of pull requests that is waited for."""
    stand(project, remote=remote)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name_forge(project, f"http://127.0.0.1:{silent.getsockname()[1]}", monkeypatch)
        over, ticks = threading.Event(), list[int]()

        def interrupt() -> None:
            with silent.accept()[0] as asked:
                asked.recv(1)
                os.kill(os.getpid(), number)
                while not over.wait(0.1) and len(ticks) < 100:
                    ticks.append(1)

        threading.Thread(target=interrupt, daemon=True).start()
        assert run_guarded(["notify"]) == 130
        over.set()
        assert len(ticks) < 20  # of 0.1 s: a machine that stands still for half a minute does not tick either
    assert "interrupted" in capfd.readouterr().err


def test_sweeps_of_another_repository_are_counted_even_if_there_is_no_news(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    double: GitHubDouble,  # noqa: F811
) -> None:
    stand(project, remote="/tmp/x/origin.git")
    name_forge(project, double.url, monkeypatch)
    assert run_guarded(["notify"]) == 0
    out, err = capfd.readouterr()
    assert out == "No news.\n"
    assert f"warning: 1 sweep was applied from /tmp/x/origin.git, which is not {REPOSITORY} at the forge" in err
    assert "hint: apply from a clone" in err and not double.statuses
