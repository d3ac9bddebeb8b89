"""`monkey init --provider slurm` and `kubernetes` where they cannot ask: what is said, and that nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from monkey.cli.commands.init import init_command

SLURM, KUBERNETES = ["--provider", "slurm"], ["--provider", "kubernetes"]


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return what runs `monkey init` in an empty directory, where there is no Slurm, and no host is known."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "config").write_text("Host nowhere\n  HostName 127.0.0.1\n  Port 1\n")
    monkeypatch.setenv("MONKEY_SSH_CONFIG", str(tmp_path / "config"))
    return lambda *words: CliRunner().invoke(init_command, words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*SLURM, "--login", "nowhere"], "nowhere refuses connections"),
        ([*SLURM, "--login", "-oProxyCommand=x"], "expected the login node, found the text '-oProxyCommand=x'"),
        ([*SLURM, "--login", "nowhere", "--partition", "a b"], "expected a word for sbatch's --partition"),
        ([*SLURM, "--login", "nowhere", "--store", "login:store"], "nothing was written"),
        ([*SLURM, "--region", "eu"], "--provider slurm has no --region"),
        ([*SLURM, "--create-bucket"], "--provider slurm has no --create-bucket"),
        (["--provider", "aws", "--login", "nowhere"], "--provider aws has no --login"),
        (["--login", "nowhere"], "(hint: add --provider slurm)"),
        (["--provider", "aws", "--context", "prod"], "--provider aws has no --context"),
        (["--provider", "slurm", "--namespace", "ml"], "--provider slurm has no --namespace"),
        ([*KUBERNETES, "--login", "nowhere"], "--provider kubernetes has no --login"),
        ([*KUBERNETES, "--namespace", "Ml"], "expected a namespace, found the text 'Ml'"),
        (["--namespace", "ml"], "(hint: add --provider kubernetes)"),
        (["--ci", "github", "--login", "nowhere"], "--ci and --login exclude each other"),
    ],
)
def test_what_cannot_be_asked_writes_nothing(init: Callable[..., Result], words: list[str], said: str) -> None:
    assert said in str(init(*words).exception) and list(Path.cwd().iterdir()) == []


def test_a_provider_of_that_type_stays_as_it_is(init: Callable[..., Result]) -> None:
    file = Path.cwd() / "monkey.yaml"
    file.write_text(before := json.dumps({"providers": {"hpc": {"type": "slurm", "time": "1h"}}}))
    said = str(init(*SLURM, "--login", "nowhere").exception)
    assert "monkey.yaml has the provider 'hpc' of type slurm; nothing was written" in said
    assert file.read_text() == before


@pytest.mark.needs("kubernetes")
def test_a_cluster_that_kubectl_does_not_know_or_reach_is_refused(
    init: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    assert "expected a context of kubectl, found none" in str(init(*KUBERNETES).exception)
    away = {
        "clusters": [{"name": "away", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "away", "user": {"token": "x"}}],
    }
    contexts = [{"name": "away", "context": {"cluster": "away", "user": "away"}}]
    (tmp_path / "kubeconfig").write_text(json.dumps({**away, "contexts": contexts}))
    said = str(init(*KUBERNETES, "--context", "away").exception)
    assert "was refused" in said and "kubectl --context=away version" in said
    assert "found 'gone' (hint: choose one by --context: away)" in str(init(*KUBERNETES, "--context", "gone").exception)
    assert list(Path.cwd().iterdir()) == []
