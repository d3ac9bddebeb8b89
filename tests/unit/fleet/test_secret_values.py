"""Secrets of a machine: found in its environment or a file that nobody else may read, and never quoted by an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey.fleet.secret_values import SecretValues, parse_secrets

TEXT = r"""
# comment
PLAIN=abc def  # said so
export EXPORTED = x#y
EMPTY=
SINGLE='a "b" $c \n # d'
DOUBLE="a 'b'\n\"c\" \\ \$d"  # tail
MANY="-----BEGIN-----
line
-----END-----"
LAST=é
"""


def test_every_form_of_line() -> None:
    assert parse_secrets(TEXT, "f") == {
        "PLAIN": "abc def",
        "EXPORTED": "x#y",
        "EMPTY": "",
        "SINGLE": r'a "b" $c \n # d',
        "DOUBLE": "a 'b'\n\"c\" \\ $d",
        "MANY": "-----BEGIN-----\nline\n-----END-----",
        "LAST": "é",
    }
    assert parse_secrets("A=1\r\nB='2'\r\n", "f") == {"A": "1", "B": "2"}
    assert parse_secrets(r'A="\\"', "f") == {"A": "\\"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=1\nhunter2", 2),
        ("A=1\n\n3A=hunter2", 3),
        ("A='hunter2", 1),
        ('A=1\nB="hunter2\\"\n', 2),
        ("A='1'\nB='1' hunter2", 2),
        ("A='hun\0ter2'", 1),
    ],
)
def test_a_mistake_is_told_by_its_line_and_not_by_what_is_there(text: str, line: int) -> None:
    with pytest.raises(FleetError) as failure:
        parse_secrets(text, "/home/u/secrets")
    assert failure.value.message.startswith(f"/home/u/secrets:{line}: ")
    assert "hunter2" not in str(failure.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the file is expected, its directory made."""
    path = tmp_path / "config" / "monkey" / "secrets"
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    return path


def test_the_environment_comes_before_the_file(tmp_path: Path, file: Path) -> None:
    file.write_text("A=file\nB=file\nC=file\n")
    values = SecretValues({"XDG_CONFIG_HOME": str(tmp_path / "config"), "A": "environment", "B": ""})
    assert values.get(["A", "B"]) == {"A": "environment", "B": "file"}
    other = tmp_path / "other"
    other.touch(0o600)
    other.write_text("B=other\n")
    assert SecretValues({"MONKEY_SECRETS_FILE": str(other)}).get(["B"]) == {"B": "other"}
    home = tmp_path / "home" / ".config"
    home.parent.mkdir()
    home.symlink_to(tmp_path / "config")
    assert SecretValues({"HOME": str(home.parent)}).get(["C"]) == {"C": "file"}
    file.unlink()
    assert values.get(["A"]) == {"A": "environment"}


def test_what_is_missing_is_named_with_the_fix(tmp_path: Path, file: Path) -> None:
    file.write_text("EMPTY=\n")
    with pytest.raises(FleetError, match="not on this machine: NOWHERE, EMPTY") as failure:
        SecretValues({"XDG_CONFIG_HOME": str(tmp_path / "config"), "THERE": "x"}).get(["NOWHERE", "THERE", "EMPTY"])
    assert failure.value.hint is not None and str(file) in failure.value.hint
    with pytest.raises(FleetError, match="MONKEY_SECRETS_FILE names a file that is not there"):
        SecretValues({"MONKEY_SECRETS_FILE": str(tmp_path / "gone")}).get(["A"])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, file: Path, mode: int) -> None:
    file.write_text("A=hunter2\n")
    file.chmod(mode)
    with pytest.raises(FleetError, match=rf"others may read .*{mode:04o}.*chmod 600"):
        SecretValues({"XDG_CONFIG_HOME": str(tmp_path / "config")}).get(["A"])


def test_what_is_no_file_is_refused(tmp_path: Path, file: Path) -> None:
    file.unlink()
    file.mkdir()
    with pytest.raises(FleetError, match="cannot be read"):
        SecretValues({"XDG_CONFIG_HOME": str(tmp_path / "config")}).get(["A"])
    file.rmdir()
    file.touch(0o600)
    file.write_bytes(b"A=\xff")
    with pytest.raises(FleetError, match="not UTF-8"):
        SecretValues({"XDG_CONFIG_HOME": str(tmp_path / "config")}).get(["A"])
    if os.geteuid() == 0:
        file.write_text("A=1")
        os.chown(file, 12345, -1)
        with pytest.raises(FleetError, match="another user"):
            SecretValues({"XDG_CONFIG_HOME": str(tmp_path / "config")}).get(["A"])
