"""A list of signers that came by a store counts if it is the one that was announced."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SigningError
from monkey.signing.allowed_signers import AllowedSigner
from monkey.signing.entry_signers import load_user_signers
from monkey.signing.keys.public_key import PublicKey
from monkey.signing.machine_list import check_signers, hash_signers, is_same_list
from monkey.signing.signer_list import add_signer
from tests.signing import make_key, write_key


def test_only_the_list_that_was_announced_is_taken() -> None:
    announced = hash_signers("alice\n")
    assert check_signers(b"alice\n", announced) == b"alice\n"
    for came in (b"", b"alice", b"mallory\n"):
        with pytest.raises(SigningError, match=f"signers/{announced} is another list"):
            check_signers(came, announced)


def test_a_plan_without_a_key_wants_the_list_of_any_of_its_signers(tmp_path: Path) -> None:
    key, ci, bob = tmp_path / "key", make_key(1), make_key(2)
    for name, of in (("ci@shop", ci), ("bob", bob)):
        add_signer(tmp_path / "allowed_signers", AllowedSigner(name, PublicKey(of.public.raw, name)))
    write_key(key, ci)
    applied = load_user_signers(tmp_path, {"MONKEY_SIGNING_KEY": str(key)}).format_for_machine()
    planned = load_user_signers(tmp_path, {}).format_for_plan()
    assert applied != planned and is_same_list(hash_signers(applied), planned)
    assert is_same_list(hash_signers(applied), applied)
    # One more is trusted by now, or another applies who says so.
    add_signer(tmp_path / "allowed_signers", AllowedSigner("eve", make_key(3).public))
    assert not is_same_list(hash_signers(applied), load_user_signers(tmp_path, {}).format_for_plan())
    write_key(key, bob)
    assert not is_same_list(
        hash_signers(applied), load_user_signers(tmp_path, {"MONKEY_SIGNING_KEY": str(key)}).format_for_plan()
    )
