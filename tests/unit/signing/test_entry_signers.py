"""Whom one process trusts: on the user's machine, and on a rented one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monkey.errors import SigningError
from monkey.signing import entry_signers
from monkey.signing.allowed_signers import AllowedSigner
from monkey.signing.entry_signers import STRANGER, EntrySigners, load_agent_signers, load_user_signers
from monkey.signing.errors import BadSignature, UnknownSigner, Unsigned
from monkey.signing.keys.user_key import UserKeyFile
from monkey.signing.signed_entry import sign_entry
from monkey.signing.signer_list import add_signer, remove_signers
from tests.signing import BODY, PLACE, make_key, write_key

BOB = make_key(2)
BY_BOB = sign_entry(BOB, PLACE, BODY)


def load(home: Path, now: float = 0.0) -> EntrySigners:
    return load_user_signers(home, {}, clock=lambda: now)


def test_ones_own_entries_count_and_the_key_is_made_when_one_signs(tmp_path: Path) -> None:
    signers = load(tmp_path)
    with pytest.raises(UnknownSigner, match=re.escape(BOB.public.fingerprint)):
        signers.check(PLACE, BY_BOB)
    assert not list(tmp_path.iterdir())
    signed = signers.sign(PLACE, BODY)
    key = UserKeyFile(tmp_path, {}).read()
    assert signed == sign_entry(key, PLACE, BODY)
    for each in (signers, load(tmp_path)):
        assert each.check(PLACE, signed) == ("owner", key.public.fingerprint, True)


def test_another_counts_once_it_is_trusted_and_no_longer_than_that(tmp_path: Path) -> None:
    signers, path = load(tmp_path), tmp_path / "allowed_signers"
    add_signer(path, AllowedSigner("bob", BOB.public))
    assert signers.refresh() and not signers.refresh()
    for _ in range(2):
        assert signers.check(PLACE, BY_BOB) == ("bob", BOB.public.fingerprint, False)
    remove_signers(path, "bob")
    assert signers.refresh()
    with pytest.raises(UnknownSigner):
        signers.check(PLACE, BY_BOB)


def test_a_plan_makes_no_key_and_names_no_owner_without_one(tmp_path: Path) -> None:
    signers = load(tmp_path)
    add_signer(tmp_path / "allowed_signers", AllowedSigner("bob", BOB.public))
    there = sorted(tmp_path.iterdir())
    planned = signers.format_for_plan()
    assert planned.startswith("bob ") and planned.count("\n") == 1 and sorted(tmp_path.iterdir()) == there
    told = signers.format_for_machine()
    assert told == signers.format_for_plan() and told.endswith(planned) and told.startswith("owner ")


def test_a_key_that_another_process_makes_is_found(tmp_path: Path) -> None:
    signers = load(tmp_path)
    key = UserKeyFile(tmp_path, {}).open()
    assert signers.refresh() and signers.check(PLACE, sign_entry(key, PLACE, BODY)).is_owner


def test_what_is_remembered_holds_for_its_place_and_bytes_alone(tmp_path: Path) -> None:
    signers = load(tmp_path)
    signed = signers.sign(PLACE, BODY)
    signers.check(PLACE, signed)
    with pytest.raises(BadSignature):
        signers.check(PLACE._replace(number=8), signed)
    with pytest.raises(BadSignature):
        signers.check(PLACE, signed.replace(b"pause", b"cause"))
    with pytest.raises(Unsigned):
        signers.check(PLACE, BODY)
    assert signers.check(PLACE, signed).is_owner


def test_few_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_signers, "REMEMBERED", 3)
    signers = load(tmp_path)
    entries = [(PLACE._replace(number=n), signers.sign(PLACE._replace(number=n), BODY)) for n in range(9)]
    for place, signed in [*entries, *entries]:
        assert signers.check(place, signed).is_owner
        assert len(signers._verified) <= 3


@pytest.mark.parametrize(("now", "counts"), [(9.0, False), (10.0, True), (20.0, True), (21.0, False)])
def test_a_key_counts_in_its_time(tmp_path: Path, now: float, counts: bool) -> None:
    add_signer(tmp_path / "allowed_signers", AllowedSigner("bob", BOB.public, 10.0, 20.0))
    signers = load(tmp_path, now)
    if counts:
        assert signers.check(PLACE, BY_BOB).name == "bob"
    else:
        with pytest.raises(UnknownSigner, match="bob, whose key does not count now"):
            signers.check(PLACE, BY_BOB)


def test_whoever_refreshes_hears_that_a_time_has_come_or_is_over(tmp_path: Path) -> None:
    now = [50.0]
    signers = load_user_signers(tmp_path, {}, clock=lambda: now[0])
    add_signer(tmp_path / "allowed_signers", AllowedSigner("bob", BOB.public, after=100.0, before=200.0))
    heard = []
    for now[0] in (50.0, 60.0, 150.0, 160.0, 250.0, 260.0):
        heard.append(signers.refresh())
    assert heard == [True, False, True, False, True, False]


def test_who_reads_strangers_obeys_no_broken_signature(tmp_path: Path) -> None:
    signers = load(tmp_path)
    reader = signers.read_strangers()
    for entry in (BY_BOB, BODY):
        assert reader.check(PLACE, entry) == STRANGER
        with pytest.raises((UnknownSigner, Unsigned)):
            signers.check(PLACE, entry)
    with pytest.raises(BadSignature):
        reader.check(PLACE._replace(number=8), BY_BOB)


def test_a_machine_trusts_what_its_user_does_and_signs_nothing(tmp_path: Path) -> None:
    mine = load(tmp_path)
    signed = mine.sign(PLACE, BODY)
    add_signer(tmp_path / "allowed_signers", AllowedSigner("bob", BOB.public, before=50.0))
    mine.refresh()
    path = tmp_path / "signers"
    path.write_text(mine.format_for_machine())
    path.chmod(0o644)
    machine = load_agent_signers(path, clock=lambda: 0.0)
    assert machine.check(PLACE, signed) == mine.check(PLACE, signed) and machine.check(PLACE, signed).is_owner
    assert machine.check(PLACE, BY_BOB) == ("bob", BOB.public.fingerprint, False)
    assert machine.signers == mine.signers and machine.signers[0].name == "owner"
    with pytest.raises(SigningError, match="no key to sign with"):
        machine.sign(PLACE, BODY)


def test_a_list_for_a_machine_has_an_owner_though_nothing_was_signed_yet(tmp_path: Path) -> None:
    path = tmp_path / "signers"
    path.write_text(load(tmp_path / "home").format_for_machine())
    path.chmod(0o600)
    assert [signer.key for signer in load_agent_signers(path).signers] == [
        UserKeyFile(tmp_path / "home", {}).read().public
    ]


@pytest.mark.parametrize("owners", [0, 2])
def test_a_machine_has_one_owner(tmp_path: Path, owners: int) -> None:
    path = tmp_path / "signers"
    path.write_text("".join(f"owner {make_key(n + 1).public.line}\n" for n in range(owners)))
    path.chmod(0o600)
    with pytest.raises(SigningError, match=f"expected one line of 'owner' in {path}, found {owners}"):
        load_agent_signers(path)
    with pytest.raises(SigningError, match="is missing"):
        load_agent_signers(tmp_path / "none")


def test_the_users_list_has_no_owner(tmp_path: Path) -> None:
    (tmp_path / "allowed_signers").write_text(f"owner {BOB.public.line}\n")
    (tmp_path / "allowed_signers").chmod(0o600)
    with pytest.raises(SigningError, match="can have the name 'owner'"):
        load(tmp_path)


def test_a_list_that_became_wrong_is_an_error_each_time(tmp_path: Path) -> None:
    signers, path = load(tmp_path), tmp_path / "allowed_signers"
    path.write_text("rubbish")
    path.chmod(0o600)
    for _ in range(2):
        with pytest.raises(SigningError, match="allowed_signers:1"):
            signers.refresh()


def test_one_key_by_the_environment_is_the_owner_s(tmp_path: Path) -> None:
    path = write_key(tmp_path / "ci", BOB)
    signers = load_user_signers(tmp_path / "home", {"MONKEY_SIGNING_KEY": str(path)})
    assert signers.check(PLACE, BY_BOB).is_owner and signers.sign(PLACE, BODY) == BY_BOB
    write_key(tmp_path / "new", make_key(3)).replace(path)
    assert signers.refresh()
    with pytest.raises(UnknownSigner):
        signers.check(PLACE, BY_BOB)


def test_one_s_own_key_in_the_list_stays_one_s_own(tmp_path: Path) -> None:
    write_key(tmp_path / "signing_key", BOB)
    add_signer(tmp_path / "allowed_signers", AllowedSigner("bob", BOB.public, before=1.0))
    assert load(tmp_path, now=5.0).check(PLACE, BY_BOB) == ("owner", BOB.public.fingerprint, True)
