"""The line of a public key, as OpenSSH writes and reads it."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.signing.keys.public_key import BadPublicKey, PublicKey, parse_public_key
from tests.signing import keygen, make_key, make_public

#: The order of the group of Ed25519.
ORDER = 2**252 + 27742317777372353535851937790883648493


@given(st.binary(min_size=32, max_size=32), st.sampled_from(["", "bob", "bob at the lab"]))
def test_a_line_comes_back(raw: bytes, comment: str) -> None:
    key = PublicKey(raw, comment)
    again = parse_public_key(key.line)
    assert again == key and again.comment == comment


def test_ssh_keygen_prints_the_same(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("ssh-keygen")
    keygen("-q", "-t", "ed25519", "-N", "", "-C", "bob at the lab", "-f", tmp_path / "key")
    key = parse_public_key((tmp_path / "key.pub").read_text())
    assert key.comment == "bob at the lab" and f"{key.line}\n" == (tmp_path / "key.pub").read_text()
    assert keygen("-l", "-f", tmp_path / "key.pub") == f"256 {key.fingerprint} {key.comment} (ED25519)\n"


def test_a_signature_has_no_second_form() -> None:
    """To S, the order of the group could be added."""
    key = make_key()
    made = key.sign(b"x")
    second = made[:32] + (int.from_bytes(made[32:], "little") + ORDER).to_bytes(32, "little")
    assert key.public.has_signed(b"x", made) and not key.public.has_signed(b"x", second)


@pytest.mark.parametrize(("raw", "made"), [(b"", b"x" * 64), (b"\xff" * 32, b"x" * 64), (b"x" * 32, b"")])
def test_what_is_no_key_or_no_signature_is_false(raw: bytes, made: bytes) -> None:
    assert not PublicKey(raw).has_signed(b"x", made)


def test_the_library_waits_until_a_key_is_used() -> None:
    code = """if True:
        import sys
        from monkey.cli.main import run_guarded
        import monkey.signing.entry_signers, monkey.cli.commands.trust
        run_guarded(["--help"])
        print("cryptography" in sys.modules)"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.endswith("\nFalse\n")


def test_two_keys_are_equal_whatever_their_comments_say() -> None:
    assert make_public(1, "a") == make_public(1, "b") != make_public(2, "a")
    assert len({make_public(1, "a"), make_public(1, "b")}) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "expected one line"),
        ("ssh-ed25519", "expected one line"),
        (f"{make_key().public.line}\n{make_key(2).public.line}", "expected one line"),
        ("ssh-rsa AAAA", "expected a key of type ssh-ed25519, found 'ssh-rsa'"),
        ("ssh-ed25519 ÄÖ", "the key 'ÄÖ' is damaged"),
        ("ssh-ed25519 A", "the key 'A' is damaged"),
        ("ssh-ed25519 AAAA", "the key 'AAAA' is damaged"),
        ("ssh-ed25519 " + base64.b64encode(make_key().public.blob + b"x").decode(), "is damaged"),
        ("ssh-ed25519 " + base64.b64encode(PublicKey(b"x" * 31).blob).decode(), "is damaged"),
        ("ssh-ed25519 AAAAB3NzaC1yc2EAAAAA", "or no ssh-ed25519 key"),
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
