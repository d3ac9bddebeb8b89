"""Signatures in OpenSSH's form: ssh-keygen takes ours, we take its, and no other bytes are one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.signing.allowed_signers import AllowedSigner
from monkey.signing.errors import BadSignature
from monkey.signing.keys.private_key import decode_private_key
from monkey.signing.keys.public_key import pack_string
from monkey.signing.sshsig import add_armor, sign_message, strip_armor, verify_message
from tests.signing import keygen, make_key, write_key

KEY = make_key()
BLOB = sign_message(KEY, b"hello", "monkey")


@given(st.binary(max_size=200), st.sampled_from(["monkey", "file", "ü"]))
def test_a_signature_holds_for_its_message_and_namespace(message: bytes, namespace: str) -> None:
    blob = sign_message(KEY, message, namespace)
    assert verify_message(blob, message, namespace) == KEY.public
    assert strip_armor(add_armor(blob)) == blob
    for other in ((message + b"\0", namespace), (message, f"{namespace}2")):
        with pytest.raises(BadSignature):
            verify_message(blob, *other)


@given(st.data())
def test_a_mutated_signature_raises_one_error(data: st.DataObject) -> None:
    at, how = data.draw(st.integers(0, len(BLOB) - 1)), data.draw(st.sampled_from(["change", "cut", "insert", "drop"]))
    sign = bytes([data.draw(st.integers(0, 255).filter(lambda value: value != BLOB[at]))])
    mutated = {
        "change": BLOB[:at] + sign + BLOB[at + 1 :],
        "cut": BLOB[:at],
        "insert": BLOB[:at] + sign + BLOB[at:],
        "drop": BLOB[:at] + BLOB[at + 1 :],
    }[how]
    if mutated != BLOB:
        with pytest.raises(BadSignature):
            verify_message(mutated, b"hello", "monkey")


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for blob in (data, b"SSHSIG\0\0\0\1" + data, BLOB + data + b"\0"):
        with pytest.raises(BadSignature):
            verify_message(blob, b"hello", "monkey")
    with pytest.raises(BadSignature):
        strip_armor(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"SSHSIG\0\0\0\1", b"SSHSIG\0\0\0\2"),
        (pack_string(b"sha512"), pack_string(b"sha256")),
        (pack_string(b"") + pack_string(b"sha512"), pack_string(b"x") + pack_string(b"sha512")),
        (pack_string(b"monkey"), pack_string(b"git")),
    ],
)
def test_other_forms_are_refused(old: bytes, new: bytes) -> None:
    assert BLOB.count(old) == 1
    with pytest.raises(BadSignature, match="no SSH signature by an Ed25519 key, with SHA-512, for 'monkey'"):
        verify_message(BLOB.replace(old, new), b"hello", "monkey")


def test_bytes_behind_the_bare_signature_are_refused() -> None:
    head, made = BLOB[:-87], BLOB[-83:]
    assert head + pack_string(made) == BLOB
    with pytest.raises(BadSignature, match="no SSH signature"):
        verify_message(head + pack_string(made + b"x"), b"hello", "monkey")


def test_ssh_keygen_accepts_ours(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("ssh-keygen")
    (tmp_path / "signers").write_text(f"{AllowedSigner('alice', KEY.public).line}\n")
    (tmp_path / "sig").write_bytes(add_armor(BLOB))
    words = ("-Y", "verify", "-f", tmp_path / "signers", "-I", "alice", "-s", tmp_path / "sig")
    assert 'Good "monkey" signature for alice' in keygen(*words, "-n", "monkey", said=b"hello")
    keygen(*words, "-n", "monkey", said=b"hallo", code=255)
    keygen(*words, "-n", "git", said=b"hello", code=255)


def test_we_accept_ssh_keygen_s(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("ssh-keygen")
    path = write_key(tmp_path / "key", KEY)
    blob = strip_armor(keygen("-Y", "sign", "-f", path, "-n", "monkey", said=b"hello").encode())
    assert blob == BLOB and verify_message(blob, b"hello", "monkey") == decode_private_key(path.read_bytes()).public
    keygen("-q", "-t", "ecdsa", "-N", "", "-f", tmp_path / "other")
    other = strip_armor(keygen("-Y", "sign", "-f", tmp_path / "other", "-n", "monkey", said=b"hello").encode())
    with pytest.raises(BadSignature, match="by an Ed25519 key"):
        verify_message(other, b"hello", "monkey")
