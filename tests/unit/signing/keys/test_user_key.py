"""The user's own key: made once, by whichever process is first, and never taken where others can read it."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.errors import SigningError
from monkey.signing.keys.public_key import parse_public_key
from monkey.signing.keys.user_key import UserKeyFile
from tests.signing import keygen, make_key, write_key

#: Waits until all are ready, then opens the key, and prints its fingerprint.
OPEN = """
import sys
from pathlib import Path
import monkey.signing.keys.private_key as keys, monkey.signing.keys.user_key as user
keys.make_private_key()
print("ready", flush=True); sys.stdin.readline()
print(user.UserKeyFile(Path(sys.argv[1]), {}).open().public.fingerprint)
"""


def test_it_is_made_on_first_use_and_stays(tmp_path: Path) -> None:
    home = tmp_path / "config" / "monkey"
    assert UserKeyFile(home, {}).read() is None and not home.exists()
    key = UserKeyFile(home, {}).open().public
    assert UserKeyFile(home, {}).open().public == key == UserKeyFile(home, {}).read().public
    assert stat.S_IMODE((home / "signing_key").stat().st_mode) == 0o600 and stat.S_IMODE(home.stat().st_mode) == 0o700
    written = parse_public_key((home / "signing_key.pub").read_text())
    assert written == key and "@" in written.comment and UserKeyFile(home, {}).open_public().line == written.line
    (home / "signing_key.pub").unlink()
    UserKeyFile(home, {}).open()
    assert sorted(path.name for path in home.iterdir()) == ["signing_key", "signing_key.pub"]


def test_processes_that_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", OPEN, str(tmp_path / "new")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(argv, **pipes) for _ in range(4)]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    found = {process.communicate()[0] for process in started}
    assert found == {f"{UserKeyFile(tmp_path / 'new', {}).open().public.fingerprint}\n"}
    assert len(list((tmp_path / "new").iterdir())) == 2


def test_a_variable_names_a_key_of_openssh_s(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("ssh-keygen")
    keygen("-q", "-t", "ed25519", "-N", "", "-C", "bob", "-f", tmp_path / "id_ed25519")
    file = UserKeyFile(tmp_path / "config", {"MONKEY_SIGNING_KEY": str(tmp_path / "id_ed25519")})
    assert file.open().public == parse_public_key((tmp_path / "id_ed25519.pub").read_text())
    assert not (tmp_path / "config").exists()


def test_a_variable_that_names_nothing_makes_nothing(tmp_path: Path) -> None:
    file = UserKeyFile(tmp_path, {"MONKEY_SIGNING_KEY": str(tmp_path / "none")})
    for use in (file.read, file.open):
        with pytest.raises(SigningError, match="names a file that is not there"):
            use()
    assert not list(tmp_path.iterdir())


def test_a_key_that_cannot_be_used_is_refused_with_its_path(tmp_path: Path) -> None:
    path = write_key(tmp_path / "signing_key", make_key(), mode=0o640)
    with pytest.raises(SigningError, match=f"others may read the signing key in {path}"):
        UserKeyFile(tmp_path, {}).open()
    path.chmod(0o600)
    assert UserKeyFile(tmp_path, {}).open().public == make_key().public
    path.write_text("rubbish")
    with pytest.raises(SigningError, match=f"{path} cannot be used: it is damaged, or no private key"):
        UserKeyFile(tmp_path, {}).open()
    assert path.read_text() == "rubbish"


def test_where_it_cannot_be_made_the_error_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SigningError, match=f"cannot be made in {tmp_path / 'file/monkey/signing_key'}|cannot be read"):
        UserKeyFile(tmp_path / "file" / "monkey", {}).open()


def test_the_public_key_beside_is_that_of_the_key(tmp_path: Path) -> None:
    old = UserKeyFile(tmp_path, {}).open_public()
    (tmp_path / "signing_key").unlink()
    new = UserKeyFile(tmp_path, {}).open_public()
    assert (tmp_path / "signing_key.pub").read_text() == f"{new.line}\n" != f"{old.line}\n"


def test_a_key_is_used_where_its_public_key_cannot_be_written(tmp_path: Path) -> None:
    key = UserKeyFile(tmp_path, {}).open().public
    (tmp_path / "signing_key.pub").unlink()
    (tmp_path / "signing_key.pub").mkdir()
    assert UserKeyFile(tmp_path, {}).open().public == key
