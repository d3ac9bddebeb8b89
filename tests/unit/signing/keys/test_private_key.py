"""The file of a private key: OpenSSH's own tools read ours, and we read theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

from monkey.signing.keys.private_key import BadPrivateKey, decode_private_key, encode_private_key, make_private_key
from tests.signing import keygen, make_key, write_key

#: As the library writes it: a third opinion on the format, besides ours and ssh-keygen's.
FORM = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_a_file_comes_back_with_its_comment(comment: str) -> None:
    key = make_key(3, comment)
    again = decode_private_key(encode_private_key(key))
    assert again == key and again.public.comment == comment


def test_the_library_reads_and_writes_the_same() -> None:
    key = make_private_key("alice@lab")
    loaded = serialization.load_ssh_private_key(encode_private_key(key), None)
    assert isinstance(loaded, ed25519.Ed25519PrivateKey) and loaded.private_bytes_raw() == key.seed
    assert decode_private_key(loaded.private_bytes(*FORM)) == key


def test_ssh_keygen_reads_ours_and_we_its(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("ssh-keygen")
    key = make_private_key("alice@lab")
    assert keygen("-y", "-f", write_key(tmp_path / "ours", key)) == f"{key.public.line}\n"
    keygen("-q", "-t", "ed25519", "-N", "", "-C", "bob", "-f", tmp_path / "its")
    its = decode_private_key((tmp_path / "its").read_bytes())
    assert f"{its.public.line}\n" == (tmp_path / "its.pub").read_text()
    keygen("-q", "-t", "ed25519", "-N", "secret", "-f", tmp_path / "locked")
    with pytest.raises(BadPrivateKey, match="encrypted with a passphrase"):
        decode_private_key((tmp_path / "locked").read_bytes())


def test_a_key_of_another_kind_is_refused() -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(BadPrivateKey, match=r"found 'ecdsa-sha2-nistp256'"):
        decode_private_key(other.private_bytes(*FORM))
    with pytest.raises(BadPrivateKey, match="OpenSSH's format"):
        decode_private_key(make_key().public.line.encode())


@given(st.data())
def test_a_damaged_file_raises_one_error_or_is_the_same_key(data: st.DataObject) -> None:
    key, text = make_key(), bytearray(encode_private_key(make_key()))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255))
    try:
        found = decode_private_key(bytes(text[: data.draw(st.sampled_from([len(text), at]))]))
    except BadPrivateKey:
        return
    assert found.public == key.public  # the check bytes, the comment, or the seed, of which only its owner has any use


def test_its_repr_shows_no_secret() -> None:
    key = make_key()
    assert repr(key) == f"PrivateKey({key.public.fingerprint})" and key.seed.hex() not in f"{key!r}{key}"
