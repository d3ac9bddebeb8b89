"""The file of a private key: OpenSSH's own tools read ours, and we read theirs."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from monkey.signing.keys.private_key import (
    BadPrivateKey,
    PrivateKey,
    decode_private_key,
    encode_private_key,
    make_private_key,
)
from monkey.signing.keys.public_key import pack_string
from tests.signing import keygen, make_key, write_key

FORM = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
BEGIN, END = b"-----BEGIN OPENSSH PRIVATE KEY-----\n", b"\n-----END OPENSSH PRIVATE KEY-----\n"
#: The file without its armor; the seed stands there once.
INSIDE = base64.b64decode(encode_private_key(make_key()).split(b"-----")[2])


def test_a_new_key_comes_back_from_its_file() -> None:
    key = make_private_key()
    again = decode_private_key(encode_private_key(key))
    assert again.public == key.public != make_private_key().public and again.sign(b"x") == key.sign(b"x")


def test_ssh_keygen_reads_ours_and_we_its(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("ssh-keygen")
    key = make_private_key()
    assert keygen("-y", "-f", write_key(tmp_path / "ours", key)).split() == key.public.line.split()
    keygen("-q", "-t", "ed25519", "-N", "", "-C", "", "-f", tmp_path / "its")
    its = decode_private_key((tmp_path / "its").read_bytes())
    assert its.public.line == (tmp_path / "its.pub").read_text().strip()
    keygen("-q", "-t", "ed25519", "-N", "secret", "-f", tmp_path / "locked")
    with pytest.raises(BadPrivateKey, match="encrypted with a passphrase"):
        decode_private_key((tmp_path / "locked").read_bytes())


def test_a_key_of_another_kind_is_refused() -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(BadPrivateKey, match="of another kind than Ed25519"):
        decode_private_key(other.private_bytes(*FORM))
    for data in (make_key().public.line.encode(), b"", BEGIN + END):
        with pytest.raises(BadPrivateKey, match="OpenSSH"):
            decode_private_key(data)


def test_a_seed_that_does_not_fit_its_public_key_is_refused() -> None:
    seed = bytes([1]) * 32
    assert INSIDE.count(seed) == 1
    with pytest.raises(BadPrivateKey, match="its two halves do not fit"):
        decode_private_key(BEGIN + base64.b64encode(INSIDE.replace(seed, b"x" * 32)) + END)


@given(st.data())
def test_a_damaged_file_raises_one_error_or_is_the_same_key(data: st.DataObject) -> None:
    key, text = make_key(), bytearray(encode_private_key(make_key()))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255))
    try:
        found = decode_private_key(bytes(text[: data.draw(st.sampled_from([len(text), at]))]))
    except BadPrivateKey:
        return
    assert found.public == key.public  # where nothing of the key stands: the armor's lines, and the check bytes


def test_an_error_shows_nothing_of_the_file() -> None:
    """Where lengths are damaged, the secret may stand where the name of the kind is read."""
    none = pack_string(b"none")
    head = b"openssh-key-v1\0" + none + none + pack_string(b"") + b"\0\0\0\1"
    with pytest.raises(BadPrivateKey, match="it is damaged, or of a kind") as caught:
        decode_private_key(BEGIN + base64.b64encode(head + pack_string(pack_string(b"SECRET"))) + END)
    assert "SECRET" not in f"{caught.value}{caught.value.__cause__}"


def test_its_repr_shows_no_secret() -> None:
    key = make_key()
    assert repr(key) == str(key) == f"PrivateKey({key.public.fingerprint})"


def test_the_first_vector_of_rfc_8032() -> None:
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    key = PrivateKey(Ed25519PrivateKey.from_private_bytes(seed))
    assert key.public.raw.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert key.sign(b"").hex().startswith("e5564300c360ac729086e2cc806e828a84877f1e")
    assert key.public.has_signed(b"", key.sign(b"")) and not key.public.has_signed(b"\0", key.sign(b""))
