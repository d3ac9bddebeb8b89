"""What runs on a host, where something else there goes wrong."""

from __future__ import annotations

import gzip
import io
import os
import stat
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from monkey.signing.allowed_signers import AllowedSigner
from monkey.signing.entry_signers import load_agent_signers
from monkey.signing.signer_list import OWNER
from monkey_stacks.ssh.remote.host_setup import (
    StoreUnreachableHere,
    _check_store,
    _lacks,
    _leftovers,
    prepare_store_access,
    remove_agents,
)
from monkey_stacks.ssh.remote.keep_alive import find_units, list_units, name_unit
from monkey_stacks.ssh.remote.paths import FleetDirectory, hold_lock
from tests.signing import make_key


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('{}'); import os; os._exit(7)", "it ended with exit code 7"),
        ("raise ImportError('no such thing')", "no such thing"),
        ('print(\'{"message": "away", "hint": "wait"}\'); raise SystemExit(1)', "away"),
    ],
)
def test_a_check_of_the_store_that_fails_says_why(tmp_path: Path, program: str, said: str) -> None:
    place = FleetDirectory(str(tmp_path), "fleet")
    place.bundle("b").mkdir(parents=True)
    (place.bundle("b") / "__main__.py").write_text(program)
    with pytest.raises(StoreUnreachableHere, match=said):
        _check_store(place, {"bundle": "b", "store": "s3://bucket", "credentials": {}})


def test_what_installers_fetch_lies_with_all_else_unless_the_user_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_CACHE_DIR", raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", "/shared/uv")
    place = FleetDirectory(str(tmp_path), "fleet")
    place.bundle("b").mkdir(parents=True)
    program = "import os; raise SystemExit(os.environ['PIP_CACHE_DIR'] + ' ' + os.environ['UV_CACHE_DIR'])"
    (place.bundle("b") / "__main__.py").write_text(program)
    with pytest.raises(StoreUnreachableHere, match=f"{place.cache}/pip /shared/uv"):
        _check_store(place, {"bundle": "b", "store": "s3://bucket", "credentials": {}})


def test_a_store_in_a_directory_is_looked_at(tmp_path: Path) -> None:
    assert _lacks(str(tmp_path)) == "" and _lacks(f"{tmp_path}/none") == f"there is no directory {tmp_path}/none"


def test_the_list_of_signers_is_written_whole_and_no_other_user_can_change_it(tmp_path: Path) -> None:
    place, alice = FleetDirectory(str(tmp_path), "fleet"), AllowedSigner(OWNER, make_key().public)
    asked: dict[str, Any] = {"kept": [], "secrets": {}, "ssh": None, "signers": f"{alice.line}\n"}
    assert place.hash_signers() == ""
    prepare_store_access(place, asked)
    assert place.hash_signers() == sha256(asked["signers"].encode()).hexdigest()
    assert stat.S_IMODE(place.signers.stat().st_mode) == 0o600
    assert place.arguments == ["--cache", str(place.cache), "--signers", str(place.signers)]
    agent = load_agent_signers(place.signers)
    before = place.signers.stat().st_ino
    bob = AllowedSigner("bob", make_key(2).public)
    prepare_store_access(place, {**asked, "signers": f"{alice.line}\n{bob.line}\n"})
    assert place.signers.stat().st_ino != before, "a reader sees the old list, or the new one"
    assert agent.refresh() and [signer.name for signer in agent.signers] == [OWNER, "bob"]
    place.signers.chmod(0o666)
    assert place.hash_signers() == "", "no agent would take it, so it is written again"
    prepare_store_access(place, asked)
    assert place.hash_signers() and agent.refresh() and len(agent.signers) == 1


INSTALL = """
import sys
from monkey_stacks.ssh.remote.bundles import install_bundle
from monkey_stacks.ssh.remote.paths import FleetDirectory
install_bundle(FleetDirectory(sys.argv[1], "fleet"), sys.argv[2], sys.stdin.buffer)
"""


@pytest.mark.parametrize("heard", [True, False])
def test_a_bundle_whose_sender_was_killed_does_not_come_late(tmp_path: Path, heard: bool) -> None:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("empty"))
    command = [sys.executable, "-c", INSTALL, str(tmp_path / "there"), sha256(tar.getvalue()).hexdigest()]
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing)
        os.close(writing)
        if not heard:
            os.close(reading)
        process.communicate(gzip.compress(tar.getvalue()))
        assert process.returncode == 0
        assert len(list(tmp_path.glob("there/bundles/*"))) == heard == (tmp_path / "there").exists()
    finally:
        if heard:
            os.close(reading)


WAIT = """
import sys
from monkey_stacks.ssh.remote.paths import FleetDirectory
with FleetDirectory(sys.argv[1], "fleet").locked():
    pass
"""


@pytest.mark.parametrize("heard", [True, False])
def test_who_waits_for_a_fleet_that_is_taken_away_leaves_nothing(tmp_path: Path, heard: bool) -> None:
    place = FleetDirectory(str(tmp_path / "there"), "fleet")
    reading, writing = os.pipe()
    with place.locked():
        command = [sys.executable, "-c", WAIT, str(place.workdir)]
        process = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        if not heard:
            os.close(reading)
            assert b"nobody waits for this any more" in process.communicate()[1], "it does not wait for us"
    if heard:
        process.communicate()
        os.close(reading)
    assert (process.returncode == 0) == heard
    assert not list(place.workdir.iterdir())


def test_what_no_fleet_of_any_host_needs_is_left_over(tmp_path: Path) -> None:
    place = FleetDirectory(str(tmp_path), "fleet")
    place.cache.mkdir()
    assert not _leftovers(place), "that may be anybody's"
    with place.bundles_locked():
        place.claim_cache()
    assert _leftovers(place) == [place.cache, place.lock]
    place.lock.unlink()
    place.bundle("0" * 64).mkdir(parents=True)
    assert _leftovers(place) == [place.bundles, place.cache]
    with place.locked():
        assert _leftovers(place) == [place.bundles, place.cache, place.host.parent]
    other = place.host.parent / "other" / "theirs"
    other.mkdir(parents=True)
    assert not _leftovers(place), "another host shares it"
    place.host.mkdir()
    (place.host / "gone.b.lock").touch()
    assert _leftovers(place) == [place.host / "gone.b.lock"]
    with hold_lock(place.host / "gone.b.lock"):
        place.clear_stray_locks()
        assert _leftovers(place), "somebody holds it"
    place.clear_stray_locks()
    assert not _leftovers(place)


def test_a_cache_that_somebody_else_had_there_is_refused_and_stays(tmp_path: Path) -> None:
    place = FleetDirectory(str(tmp_path), "fleet")
    theirs = [tmp_path / part / "theirs" for part in ("cache", "bundles")]
    for path in theirs:
        path.parent.mkdir()
        path.touch()
    assert place.occupied()
    with place.bundles_locked(), pytest.raises(FileExistsError, match="not monkey's"):
        place.claim_cache()
    place.bundle("0" * 64).mkdir()
    with place.locked():
        place.directory.mkdir()
    remove_agents(place)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(theirs)
    assert not place.bundle("0" * 64).exists()


def test_units_are_of_those_whose_agents_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two projects on one host, each with a place of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    one, two = FleetDirectory(f"{tmp_path}/a place 100%", "one"), FleetDirectory(f"{tmp_path}/a place 100%/too", "two")
    find_units().mkdir(parents=True)
    for place in (one, two):
        agent = str(place.directory / "1").replace("%", "%%")
        (find_units() / name_unit(place, place.directory / "1")).write_text(f"ConditionPathExists=!{agent}/drain\n")
    assert list_units(one.host) == [name_unit(one, one.directory / "1")]
    assert list_units(two.host) == [name_unit(two, two.directory / "1")]
