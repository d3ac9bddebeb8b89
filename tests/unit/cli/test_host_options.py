"""`monkey init --provider ssh` where it cannot ask: what is said, and that nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from monkey.cli.commands.init import init_command

SSH = ["--provider", "ssh"]
CONFIG = """\
Host nowhere
  HostName 127.0.0.1
  Port 1
Host gpu1 gpu2 *.lab !old "quoted"
Match all
Include {base}/more/*.conf
Host=gpu1
"""


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return what runs `monkey init` in an empty directory; the ssh_config names some hosts, of which none answers."""
    (tmp_path / "here").mkdir()
    (tmp_path / "more").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "config").write_text(CONFIG.format(base=tmp_path))
    (tmp_path / "more/a.conf").write_text("host far\n")
    monkeypatch.setenv("MONKEY_SSH_CONFIG", str(tmp_path / "config"))
    return lambda *words: CliRunner().invoke(init_command, words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (SSH, "your ssh configuration has nowhere, gpu1, gpu2, quoted, far)"),
        ([*SSH, "--host", "nowhere"], "nowhere refuses connections"),
        ([*SSH, "--host", "nowhere"], "; nothing was written"),
        ([*SSH, "--host", "-oProxyCommand=x"], "expected a host, found '-oProxyCommand=x'"),
        ([*SSH, "--host", "gpu1", "--host", "GPU1"], "the host 'GPU1' is there twice; nothing was written"),
        ([*SSH, "--host", "nowhere", "--store", "gpu1:store"], "write ssh://gpu1/store"),
        ([*SSH, "--host", "nowhere", "--store", "store"], "nowhere cannot reach the store"),
        ([*SSH, "--host", "nowhere", "--store", "ssh://nowhere/~/store"], "the host key of the store's host nowhere"),
        ([*SSH, "--host", "nowhere", "--login", "x"], "--provider ssh has no --login"),
        ([*SSH, "--host", "nowhere", "--region", "eu"], "--provider ssh has no --region"),
        (["--provider", "slurm", "--host", "nowhere"], "--provider slurm has no --host"),
        (["--provider", "aws", "--host", "nowhere"], "--provider aws has no --host"),
        (["--host", "nowhere"], "(hint: add --provider ssh)"),
        (["--ci", "github", "--host", "nowhere"], "--ci and --host exclude each other"),
    ],
)
def test_what_cannot_be_asked_writes_nothing(init: Callable[..., Result], words: list[str], said: str) -> None:
    # A bucket is for the hosts to try: what is refused here is the host itself.
    store = [] if "--store" in words or "--host" not in words or "ssh" not in words else ["--store", "s3://bucket/x"]
    assert said in str(init(*words, *store).exception) and list(Path.cwd().iterdir()) == []


def test_files_that_include_each_other_are_read_to_an_end(init: Callable[..., Result], tmp_path: Path) -> None:
    with (tmp_path / "more/a.conf").open("a") as file:
        file.write(f"Include {tmp_path}/more/a.conf /proc/none *\n")
    assert "quoted, far)" in str(init(*SSH).exception)


def test_all_hosts_that_cannot_be_used_are_named_at_once(init: Callable[..., Result]) -> None:
    said = str(init(*SSH, "--host", "nowhere", "--host", "x@nowhere:2", "--store", "s3://bucket/x").exception)
    assert said.startswith("2 hosts cannot be used; nothing was written:\n  nowhere refuses connections (")
    assert "\n  x@nowhere:2 refuses connections (" in said and "leave them out" in said


def test_a_provider_of_that_type_stays_as_it_is(init: Callable[..., Result]) -> None:
    file = Path.cwd() / "monkey.yaml"
    file.write_text(before := json.dumps({"providers": {"desk": {"type": "ssh", "hosts": ["gpu9"]}}}))
    said = str(init(*SSH, "--host", "nowhere").exception)
    assert "monkey.yaml has the provider 'desk' of type ssh; nothing was written" in said
    assert file.read_text() == before
