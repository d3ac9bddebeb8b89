"""`monkey trust`: one's own key, and whose entries count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monkey.cli.main import run_guarded
from monkey.signing.keys.user_key import UserKeyFile
from tests.signing import make_public

BOB = make_public(2, "bob@lab")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config" / "monkey"


def test_one_s_own_line_is_what_another_trusts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_guarded(["trust"]) == 0
    said = capsys.readouterr().out
    line = UserKeyFile().open_public().line
    assert line in said.replace("  ssh", "ssh").splitlines() and "no other signer is trusted" in said
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "colleague"))
    assert run_guarded(["trust", *line.split(), "--name", "alice"]) == 0
    assert run_guarded(["trust"]) == 0
    assert f"  alice {UserKeyFile(tmp_path / 'config/monkey', {}).open().public.fingerprint}" in capsys.readouterr().out


def test_a_signer_is_added_once_and_removed(capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path) -> None:
    (tmp_path / "bob.pub").write_text(f"{BOB.line}\n")
    for said, words in (
        ("trusted from now on: bob@lab", ["trust", "bob.pub"]),
        ("trusted already: bob@lab", ["trust", BOB.line]),
        ("no longer trusted: bob@lab", ["trust", "--remove", BOB.fingerprint]),
    ):
        assert run_guarded(words) == 0
        assert said in capsys.readouterr().out
    assert (home / "allowed_signers").read_text() == ""
    assert run_guarded(["trust", "--remove", "bob@lab"]) == 1
    assert "no trusted signer is 'bob@lab'" in capsys.readouterr().err


def test_json_has_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text("project: digits\n")
    assert run_guarded(["trust", BOB.line]) == 0
    assert run_guarded(["trust", "--secret", "TOKEN", "--secret", "KEY"]) == 0
    assert "in project digits: KEY, TOKEN" in capsys.readouterr().out
    assert run_guarded(["trust", "--secret", "OTHER", "--no-secret", "KEY"]) == 0
    capsys.readouterr()
    assert run_guarded(["trust", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["own"]["key"] == UserKeyFile().open_public().line
    assert said["signers"] == [{"name": "bob@lab", "fingerprint": BOB.fingerprint}]
    assert said["secrets"] == {"digits": ["OTHER", "TOKEN"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ssh-rsa AAAA"], "expected a key of type ssh-ed25519"),
        (["nothing.pub"], "the key in 'nothing.pub' cannot be read"),
        ([make_public(2, "").line], "add --name NAME"),
        ([make_public(2, "bob at home").line], "give one by --name"),
        ([BOB.line, "--name", "owner"], "`owner` is taken"),
        ([BOB.line, "--remove", "x"], "exclude each other"),
        (["--name", "x"], "--name is for KEY"),
        (["--secret", "a b"], "expected the names of secrets"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    capsys: pytest.CaptureFixture[str], home: Path, words: list[str], said: str
) -> None:
    assert run_guarded(["trust", *words]) == 1
    assert said in capsys.readouterr().err
    assert not (home / "allowed_signers").exists() and not (home / "secret_grants").exists()


def test_one_s_own_key_needs_no_line(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert run_guarded(["trust", UserKeyFile().open().public.line]) == 1
    assert "your own key" in capsys.readouterr().err and not (home / "allowed_signers").exists()


def test_a_comment_cannot_command_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bob.pub").write_text(f"{make_public(2, '').line} \x1b[31mred\x1b[0m\n")
    assert run_guarded(["trust", "bob.pub"]) == 1
    assert "\x1b" not in capsys.readouterr().err
