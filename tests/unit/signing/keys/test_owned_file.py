"""Files that decide whom a user trusts are read only where no other user can have written them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.errors import SigningError
from monkey.signing.keys.owned_file import read_owned_file


def make_file(path: Path, mode: int) -> Path:
    path.write_text("x")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("mode", "private", "said"),
    [
        (0o600, True, ""),
        (0o400, True, ""),
        (0o644, False, ""),
        (0o640, True, "others may read the key"),
        (0o604, True, "chmod 600"),
        (0o664, False, "others may change the key"),
        (0o602, False, "chmod go-w"),
    ],
)
def test_modes(tmp_path: Path, mode: int, private: bool, said: str) -> None:
    path = make_file(tmp_path / "file", mode)
    if not said:
        assert read_owned_file(path, "the key", private=private) == b"x"
        return
    with pytest.raises(SigningError, match=said) as caught:
        read_owned_file(path, "the key", private=private)
    assert str(path) in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SigningError, match="found something else"):
        read_owned_file(tmp_path / "pipe", "the key")
    with pytest.raises(SigningError, match=r"found something else|directory"):
        read_owned_file(tmp_path, "the key")
    with pytest.raises(FileNotFoundError):
        read_owned_file(tmp_path / "none", "the key")
    with pytest.raises(SigningError, match="more than 1,048,576 bytes"):
        large = make_file(tmp_path / "large", 0o600)
        large.write_bytes(b"x" * ((1 << 20) + 1))
        read_owned_file(large, "the key")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = make_file(tmp_path / "file", 0o600)
    os.chown(path, 12345, -1)
    with pytest.raises(SigningError, match="belongs to another user"):
        read_owned_file(path, "the key")
