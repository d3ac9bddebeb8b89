"""Lines of trusted signers: what is not understood is refused with its place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.errors import SigningError
from monkey.signing.allowed_signers import AllowedSigner, is_signer_name, parse_allowed_signers, read_allowed_signers
from monkey.signing.sshsig import add_armor, sign_message
from tests.signing import keygen, make_key

KEY = make_key().public
LINE = f"alice {KEY.line}"
moments = st.none() | st.integers(0, 4 * 10**9).map(float)


@given(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,20}", fullmatch=True), moments, moments)
def test_a_line_comes_back(name: str, after: float | None, before: float | None) -> None:
    signer = AllowedSigner(name, KEY, after, before)
    assert parse_allowed_signers(f"# a comment\n\n  {signer.line}\r\n", "file") == [signer]


def test_options_are_read() -> None:
    options = 'valid-after="20260102Z",Namespaces="git,monkey",valid-before="202601031504Z"'
    [signer] = parse_allowed_signers(f"alice {options} {KEY.line}", "file")
    after, before = datetime(2026, 1, 2, tzinfo=UTC).timestamp(), datetime(2026, 1, 3, 15, 4, tzinfo=UTC).timestamp()
    assert (signer.after, signer.before) == (after, before)
    assert [signer.is_valid(at) for at in (after - 1, after, before, before + 1)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alice", "expected a name and a key"),
        (KEY.line, "expected a name and a key|expected one name"),
        (f"*@lab {KEY.line}", "without patterns"),
        (f"alice,bob {KEY.line}", "without patterns"),
        (f"-x {KEY.line}", "without patterns"),
        (f"alice cert-authority {KEY.line}", "the option 'cert-authority' is not supported"),
        (f'alice verify-required="x y" {KEY.line}', "'verify-required' is not supported"),
        (f'alice namespaces="git" {KEY.line}', 'expected namespaces="monkey"'),
        (f'alice namespaces="git",namespaces="monkey" {KEY.line}', "each once"),
        (f'alice valid-before="20260101" {KEY.line}', "expected a time in UTC"),
        (f'alice valid-before="20261301Z" {KEY.line}', "month must be in 1..12"),
        (f"alice valid-before {KEY.line}", "expected a time in UTC"),
        (f'alice namespaces="monkey", {KEY.line}', "an option is missing"),
        ("alice ssh-rsa AAAAB3NzaC1yc2EAAAAA", "found 'ssh-rsa'"),
        ("alice ssh-ed25519 AAAA", "the key 'AAAA' is damaged"),
        (f"bob {KEY.line}", "line 1 has this key already"),
    ],
)
def test_a_wrong_line_is_named(line: str, said: str) -> None:
    with pytest.raises(SigningError, match=said) as caught:
        parse_allowed_signers(f"{LINE}\n{line}\n", "the/file")
    assert "the/file:2: " in str(caught.value)


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    for line in (text, f"alice {text} {KEY.line}"):
        try:
            parse_allowed_signers(line, "file")
        except SigningError:
            continue


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "allowed_signers"
    path.write_text(LINE)
    path.chmod(0o644)
    assert [signer.name for signer in read_allowed_signers(path)] == ["alice"]
    path.chmod(0o666)
    with pytest.raises(SigningError, match="others may change"):
        read_allowed_signers(path)
    path.chmod(0o600)
    path.write_bytes(b"\xff")
    with pytest.raises(SigningError, match="not UTF-8"):
        read_allowed_signers(path)


def test_names() -> None:
    assert all(map(is_signer_name, ["alice", "alice@lab.example", "a+b", "0", "_"]))
    assert not any(map(is_signer_name, ["", "#x", "!x", "a b", "a,b", "a*", "ü", 'a"', "x" * 101, "a\n"]))


@pytest.mark.parametrize(
    ("now", "code"), [(999_999_999, 255), (1_000_000_000, 0), (2_000_000_000, 0), (2_000_000_001, 255)]
)
def test_ssh_keygen_takes_our_times_as_we_do(
    tmp_path: Path, require: Callable[[str], str], now: int, code: int
) -> None:
    require("ssh-keygen")
    signer = AllowedSigner("alice", KEY, 1_000_000_000, 2_000_000_000)
    (tmp_path / "signers").write_text(f"{signer.line}\n")
    (tmp_path / "sig").write_bytes(add_armor(sign_message(make_key(), b"x", "monkey")))
    then = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%SZ")
    words = ("-Y", "verify", "-f", tmp_path / "signers", "-I", "alice", "-n", "monkey", "-s", tmp_path / "sig")
    keygen(*words, "-O", f"verify-time={then}", said=b"x", code=code)
    assert signer.is_valid(now) == (code == 0)
