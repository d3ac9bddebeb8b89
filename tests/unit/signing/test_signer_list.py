"""Changes of the list of trusted signers."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monkey.errors import NotFound, SigningError
from monkey.signing.allowed_signers import AllowedSigner, read_allowed_signers
from monkey.signing.signer_list import add_signer, remove_signers
from tests.signing import make_key

ALICE, BOB = AllowedSigner("alice", make_key(1).public), AllowedSigner("bob", make_key(2).public)


def test_what_is_added_twice_stands_there_once(tmp_path: Path) -> None:
    path = tmp_path / "config" / "allowed_signers"
    assert add_signer(path, ALICE) and not add_signer(path, ALICE) and add_signer(path, BOB)
    assert read_allowed_signers(path) == [ALICE, BOB] and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_other_lines_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "allowed_signers"
    path.write_text(f"# the lab\nalice  {ALICE.key.line}")
    path.chmod(0o600)
    add_signer(path, BOB)
    assert path.read_text() == f"# the lab\nalice  {ALICE.key.line}\n{BOB.line}\n"
    assert remove_signers(path, BOB.key.fingerprint) == [BOB]
    assert remove_signers(path, "alice") == [ALICE]
    assert path.read_text() == "# the lab\n"
    with pytest.raises(NotFound):
        remove_signers(path, "alice")


def test_one_name_may_have_two_keys_and_goes_with_both(tmp_path: Path) -> None:
    path, second = tmp_path / "allowed_signers", AllowedSigner("alice", make_key(3).public)
    assert add_signer(path, ALICE) and add_signer(path, second)
    assert remove_signers(path, "alice") == [ALICE, second] and read_allowed_signers(path) == []


@pytest.mark.parametrize("name", ["owner", "a b", "", "*"])
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SigningError, match="cannot be a signer's name"):
        add_signer(tmp_path / "allowed_signers", AllowedSigner(name, ALICE.key))
    assert not list(tmp_path.iterdir())


def test_a_key_has_one_name(tmp_path: Path) -> None:
    add_signer(tmp_path / "allowed_signers", ALICE)
    with pytest.raises(SigningError, match="trusted already, as alice"):
        add_signer(tmp_path / "allowed_signers", AllowedSigner("mallory", ALICE.key))


def test_a_list_with_a_wrong_line_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "allowed_signers"
    path.write_text("rubbish\n")
    path.chmod(0o600)
    for change in (lambda: add_signer(path, ALICE), lambda: remove_signers(path, "alice")):
        with pytest.raises(SigningError, match="allowed_signers:1: "):
            change()
    assert path.read_text() == "rubbish\n"


def test_of_many_that_add_at_once_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "allowed_signers"
    signers = [AllowedSigner(f"user{number}", make_key(number).public) for number in range(1, 17)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda signer: add_signer(path, signer), signers))
    assert set(read_allowed_signers(path)) == set(signers)
