"""The line of a public key, as OpenSSH writes and reads it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.signing.keys.public_key import BadPublicKey, PublicKey, decode_key_blob, parse_public_key
from tests.signing import keygen, make_key


@given(st.binary(min_size=32, max_size=32), st.sampled_from(["", "bob", "bob at the lab"]))
def test_a_line_comes_back(raw: bytes, comment: str) -> None:
    key = PublicKey(raw, comment)
    again = parse_public_key(key.line)
    assert again == key and again.comment == comment and decode_key_blob(key.blob) == raw


def test_ssh_keygen_prints_the_same(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("ssh-keygen")
    keygen("-q", "-t", "ed25519", "-N", "", "-C", "bob at the lab", "-f", tmp_path / "key")
    key = parse_public_key((tmp_path / "key.pub").read_text())
    assert key.comment == "bob at the lab" and f"{key.line}\n" == (tmp_path / "key.pub").read_text()
    assert keygen("-l", "-f", tmp_path / "key.pub") == f"256 {key.fingerprint} {key.comment} (ED25519)\n"


def test_two_keys_are_equal_whatever_their_comments_say() -> None:
    assert make_key(1, "a").public == make_key(1, "b").public != make_key(2, "a").public
    assert len({make_key(1, "a").public, make_key(1, "b").public}) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "expected one line"),
        ("ssh-ed25519", "expected one line"),
        (f"{make_key().public.line}\n{make_key(2).public.line}", "expected one line"),
        ("ssh-rsa AAAA", "expected a key of type ssh-ed25519, found 'ssh-rsa'"),
        ("ssh-ed25519 ÄÖ", "no base64"),
        ("ssh-ed25519 A", "no base64"),
        ("ssh-ed25519 AAAA", "cut short"),
        ("ssh-ed25519 " + base64.b64encode(make_key().public.blob + b"x").decode(), "follow its end"),
        ("ssh-ed25519 " + base64.b64encode(PublicKey(b"x" * 31).blob).decode(), "expected a key of 32 bytes, found 31"),
        ("ssh-ed25519 AAAAB3NzaC1yc2EAAAAA", "found 'ssh-rsa'"),
    ],
)
def test_what_is_no_such_key_is_refused_with_its_reason(line: str, said: str) -> None:
    with pytest.raises(BadPublicKey, match=said):
        parse_public_key(line)


@given(st.text(max_size=80))
def test_no_text_raises_anything_else(text: str) -> None:
    for line in (text, f"ssh-ed25519 {text}"):
        with pytest.raises(BadPublicKey):
            parse_public_key(line)
