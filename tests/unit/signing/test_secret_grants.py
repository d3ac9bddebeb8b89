"""Which secrets the revisions of other signers may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SigningError
from monkey.signing.secret_grants import SecretGrants


def test_nothing_is_granted_unless_it_is_written(tmp_path: Path) -> None:
    grants = SecretGrants(tmp_path / "secret_grants")
    assert not grants.may_name("digits", "TOKEN") and not list(tmp_path.iterdir())
    grants.change("digits", add=frozenset({"TOKEN", "KEY"}))
    assert grants.may_name("digits", "TOKEN") and not grants.may_name("other", "TOKEN")
    assert (tmp_path / "secret_grants").read_text() == "digits KEY TOKEN\n"


def test_grants_are_taken_back_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "secret_grants"
    SecretGrants(path).change("digits", add=frozenset({"A", "B"}))
    SecretGrants(path).change("other", add=frozenset({"A"}))
    SecretGrants(path).change("digits", add=frozenset({"C"}), remove=frozenset({"A"}))
    assert SecretGrants(path).projects == {"digits": frozenset("BC"), "other": frozenset("A")}
    SecretGrants(path).change("digits", remove=frozenset({"B", "C"}))
    assert SecretGrants(path).projects == {"other": frozenset("A")}


@pytest.mark.parametrize("text", ["digits", "digits A-B", "digits A\ndigits B"])
def test_a_wrong_line_is_named_and_grants_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret_grants"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SigningError, match=r"secret_grants:[12]: expected PROJECT NAME"):
        SecretGrants(path)


def test_what_is_no_name_of_a_secret_is_refused(tmp_path: Path) -> None:
    for project, name in (("digits", "a b"), ("digits", ""), ("a b", "A"), ("", "A")):
        with pytest.raises(SigningError):
            SecretGrants(tmp_path / "secret_grants").change(project, add=frozenset({name}))
    assert not list(tmp_path.iterdir())
