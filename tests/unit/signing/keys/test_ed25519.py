"""Ed25519 itself: one signature for one message, by one key."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monkey.signing.keys.ed25519 import compute_public, is_signature, make_seed, sign_bytes

#: The order of the group: a signature with S + L would be a second one of the same message.
ORDER = 2**252 + 27742317777372353535851937790883648493


def test_the_first_vector_of_rfc_8032() -> None:
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    made = sign_bytes(seed, b"")
    assert compute_public(seed) == public and made.hex().startswith("e5564300c360ac729086e2cc806e828a84877f1e")
    assert is_signature(public, made, b"") and not is_signature(public, made, b"\0")


def test_a_signature_has_no_second_form() -> None:
    seed = make_seed()
    made = sign_bytes(seed, b"x")
    second = made[:32] + (int.from_bytes(made[32:], "little") + ORDER).to_bytes(32, "little")
    assert is_signature(compute_public(seed), made, b"x") and not is_signature(compute_public(seed), second, b"x")


@pytest.mark.parametrize(("public", "made"), [(b"", b"x" * 64), (b"\xff" * 32, b"x" * 64), (b"x" * 32, b"")])
def test_what_is_no_key_or_no_signature_is_false(public: bytes, made: bytes) -> None:
    assert not is_signature(public, made, b"x")


def test_the_library_waits_until_a_signature_is_asked_for() -> None:
    code = "import sys, monkey.signing.entry_signers, monkey.cli.commands.trust; print('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
