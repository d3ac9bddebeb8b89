"""A link in place of a directory that monkey sweeps, or of a file that it opens: what it leads to stays as it was."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from monkey.apply.sync.sync_directory import SyncDirectory
from monkey.apply.world.known_stores import KnownStores
from monkey.cli.main import run_guarded
from monkey.errors import FleetError
from monkey.metrics.spool import Spool, rescue_points
from monkey.metrics.spool_reader import SpoolBacklog
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.store.memory import MemoryStore
from monkey.transfer.code.code_snapshot import read_code, spell_code_key, upload_code
from monkey_agent.bootstrap.pilot_entry import PilotScratch
from monkey_agent.cache.cache import Cache
from monkey_agent.cache.code_cache import CodeCache
from monkey_agent.cache.eviction import drop_rubbish, move_to_trash, trim_cache
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.execution.workspace import Workspaces
from monkey_agent.lifecycle.state_directory import StateDirectory
from monkey_agent.supervisor.shared_state import SharedState
from monkey_stacks.locking.local_lock import LockDirectory
from monkey_stacks.slurm.remote.pilot_directory import PilotDirectory
from monkey_stacks.ssh.remote.bundles import clear_all
from monkey_stacks.ssh.remote.paths import FleetDirectory
from tests.precious import Precious

INFLUX = InfluxSettings("http://localhost:1", bucket="m", token="TOKEN")
TAGS = {"sweep": "s", "job": "j", "attempt": 1, "host": "h"}
#: The directories of a cache.
CACHE = ("code", "environments", "datasets/trees", "datasets/objects", "datasets/aside", "datasets/names", "trash")


@pytest.fixture
def victim(tmp_path: Path) -> Precious:
    """Return what a link leads to: old, with names as monkey's own, and names that begin with a dot."""
    victim = Precious(tmp_path / "victim")
    for name in (".x.part", ".ssh", "8d4f", "1.jsonl", "job.1"):
        (victim.root / name).write_text("mine")
    for path in sorted(victim.root.rglob("*"), reverse=True):
        os.utime(path, (0, 0))
    os.utime(victim.root, (0, 0))
    victim.begin()
    return victim


def plant(place: Path, victim: Precious) -> Path:
    """Put a link to the victim in place of a directory or a file."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(place.with_name("before"))
    place.symlink_to(victim.root)
    return place


@pytest.mark.parametrize("sweep", [lambda root: trim_cache(root, 0, urgent=True), drop_rubbish])
@pytest.mark.parametrize("name", CACHE)
def test_a_cache_is_not_swept_through_a_link(
    tmp_path: Path, victim: Precious, name: str, sweep: Callable[[str], object]
) -> None:
    place = plant(tmp_path / "cache" / name, victim)
    with pytest.raises(OSError, match="is a link") as caught:
        sweep(str(tmp_path / "cache"))
    assert caught.value.filename == str(place)
    victim.check()


def test_objects_behind_a_link_among_directories_of_objects_stay(tmp_path: Path, victim: Precious) -> None:
    plant(tmp_path / "cache/datasets/objects/8d", victim)
    drop_rubbish(str(tmp_path / "cache"))
    victim.check()


def test_nothing_behind_a_link_goes_to_the_trash(tmp_path: Path, victim: Precious) -> None:
    place = plant(tmp_path / "cache/datasets/objects/8d", victim)
    with pytest.raises(OSError, match="is a link"):
        move_to_trash(str(tmp_path / "cache"), f"{place}/8d4f")
    victim.check()


def test_an_entry_behind_a_link_is_not_used(tmp_path: Path, victim: Precious) -> None:
    place = plant(tmp_path / "cache/environments", victim)
    with pytest.raises(OSError, match="is a link"):
        asyncio.run(Cache(tmp_path / "cache").use(place / "e"))
    victim.check()


def test_a_link_in_place_of_a_snapshot_is_replaced(tmp_path: Path, victim: Precious) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text("good")

    async def fetch() -> None:
        store, code = MemoryStore(), read_code(tmp_path / "project")
        await upload_code(store, code)
        plant(tmp_path / "cache/code" / code.hash, victim)
        codes = CodeCache(store, Cache(tmp_path / "cache"))
        snapshot = await codes.get(code.hash, spell_code_key(code.hash))
        assert [file.path for file in snapshot.files] == ["train.py"]
        await codes.close()

    asyncio.run(fetch())
    victim.check()


@pytest.mark.parametrize("name", ["sources", "kept", "points"])
def test_a_spool_sweeps_and_fills_nothing_through_a_link(tmp_path: Path, victim: Precious, name: str) -> None:
    metrics = tmp_path / "state/attempts/j.1/metrics"
    metrics.mkdir(parents=True)
    (metrics / "0.jsonl").write_text('{"m":{"loss":1},"step":1,"t":1790000000.5}\n')
    spool = Spool(str(tmp_path / "state/metrics"), INFLUX)
    spool.register("j.1", str(metrics), TAGS)
    spool.add(b"a v=1 1\n")
    spool.close()
    plant(Path(spool.path) / name, victim)
    backlog = SpoolBacklog(spool.path)
    backlog.look()
    backlog.make_room(0)
    rescue_points(str(tmp_path / "state"), str(tmp_path / "state/metrics"))
    with contextlib.suppress(OSError):
        spool.keep("j.1", str(metrics))
    with contextlib.suppress(OSError):
        spool.register("x", "", TAGS)
    spool.forget("8d4f")
    spool.add(b"a v=2 2\n")
    victim.check()


@pytest.mark.parametrize("name", ["checkpoints", "left", "trash", "unread"])
def test_what_an_agent_discards_goes_through_no_link(tmp_path: Path, victim: Precious, name: str) -> None:
    """A job put it there while the agent ran."""
    (tmp_path / "checkpoints/job.1.1").mkdir(parents=True)
    (victim.root / "job.1.1").touch()
    victim.begin()
    spaces, kept = Workspaces(tmp_path), LocalCheckpoints(tmp_path)
    space = spaces.take("job", 1)
    space.spoilt = True
    space.unread = name == "unread"
    space.root = f"{plant(tmp_path / name, victim)}/job.1"
    spaces.give(space)
    spaces.empty_trash()
    kept.forget("job")
    assert (spaces.stuck == [f"{tmp_path}/trash"]) == (name == "trash")
    victim.check()


def test_the_register_is_mapped_through_no_link(tmp_path: Path) -> None:
    SharedState.create(str(tmp_path / "other"), "boot").close()
    (tmp_path / "register").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"):
        SharedState(str(tmp_path / "register"))


def test_the_lock_of_the_state_is_opened_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("mine")
    (tmp_path / "state").mkdir()
    (tmp_path / "state/lock").symlink_to(tmp_path / "thesis")
    with pytest.raises(FleetError, match="cannot be used"):
        StateDirectory(tmp_path / "state")
    assert (tmp_path / "thesis").read_text() == "mine"


def test_a_lock_is_truncated_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("mine")
    (tmp_path / "state").mkdir()
    (tmp_path / "state/lock").symlink_to(tmp_path / "thesis")
    with pytest.raises(FleetError, match="cannot be written"):
        asyncio.run(LockDirectory(tmp_path / "state").enter(lambda line: None))
    assert (tmp_path / "thesis").read_text() == "mine"


def test_directories_of_the_state_are_its_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        StateDirectory(tmp_path / "home/state/monkey/vm").close()
        Workspaces(tmp_path / "home/state/monkey/vm")
        LocalCheckpoints(tmp_path / "home/state/monkey/vm")
        Spool(str(tmp_path / "home/state/monkey/vm/metrics"), INFLUX)
    finally:
        os.umask(before)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").rglob("*") if path.is_dir()}
    assert len(found) > 8
    assert set(found.values()) == {0o700}


def test_a_pilot_clears_no_states_behind_a_link(tmp_path: Path, victim: Precious) -> None:
    scratch = PilotScratch(tmp_path / "scratch", "one")
    plant(scratch.path / "state", victim)
    with contextlib.suppress(OSError):
        scratch.clear(state=True)
    victim.check()


@pytest.mark.parametrize("name", ["failed", "logs", "bundles"])
def test_a_fleet_of_pilots_tidies_nothing_behind_a_link(
    tmp_path: Path, victim: Precious, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = PilotDirectory(str(tmp_path / "work"), "fleet")
    for directory in (fleet.failed, fleet.logs, fleet.bundles):
        directory.mkdir(parents=True)
    (victim.root / ("a" * 64)).mkdir()
    victim.begin()
    for number in range(600):
        (victim.root / f"log.{number}").touch()
    victim.begin()
    plant(fleet.directory / name, victim)
    for work in (fleet.forget_failures, partial(fleet.choose_bundle, "b" * 64, alone=True)):
        with contextlib.suppress(OSError):
            work()
    victim.check()


def test_bundles_on_a_host_are_cleared_through_no_link(tmp_path: Path, victim: Precious) -> None:
    place = FleetDirectory(str(tmp_path / "work"), "fleet")
    plant(place.bundles, victim)
    with pytest.raises(OSError, match="behind a link"):
        clear_all(place)
    victim.check()


def test_a_clone_behind_a_link_is_not_forgotten(tmp_path: Path, victim: Precious) -> None:
    directory = SyncDirectory(tmp_path / "sync", "work")
    plant(tmp_path / "sync/tree", victim)
    with pytest.raises(OSError, match="cannot be removed"):
        directory.forget_tree()
    victim.check()


def test_known_stores_are_not_written_through_a_link(tmp_path: Path, victim: Precious) -> None:
    plant(tmp_path / "project/.monkey", victim)
    KnownStores(tmp_path / "project").meet("/store", "id")
    victim.check()


def test_init_writes_nothing_through_a_link(
    tmp_path: Path, victim: Precious, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tmp_path / "project/specs", victim)
    monkeypatch.chdir(tmp_path / "project")
    assert run_guarded(["init"]) == 1
    assert "remove the link" in capsys.readouterr().err
    victim.check()


def test_init_replaces_a_link_to_what_git_ignores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis").write_text("mine\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.gitignore").symlink_to(tmp_path / "thesis")
    monkeypatch.chdir(tmp_path / "project")
    assert run_guarded(["init"]) == 0
    assert (tmp_path / "thesis").read_text() == "mine\n"
    assert "mine\n" in (tmp_path / "project/.gitignore").read_text()
