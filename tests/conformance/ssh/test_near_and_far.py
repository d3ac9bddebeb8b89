"""The store on an SSH host, seen from the host, too: a directory store on the same directory, at the same time."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from monkey.store.create import Won, create_object
from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.conformance.racer import race
from tests.loops import Run
from tests.sshd import Sshd


@pytest.fixture
def place(tmp_path: Path, run: Run, ssh_host: Sshd) -> Path:
    """Return the directory of a store that was just begun over SSH."""
    run(run(open_store(f"ssh://there{tmp_path}/store", begin=True)).close())
    return tmp_path / "store"


@pytest.fixture
def far(place: Path, run: Run) -> Any:
    """Return a client by SSH."""
    store = run(open_store(f"ssh://there{place}"))
    yield store
    run(store.close())


@pytest.fixture
def near(place: Path, run: Run) -> Any:
    """Return a client in the directory itself."""
    store = run(open_store(str(place)))
    yield store
    run(store.close())


def test_both_write_the_same_layout(place: Path, near: Store, far: Store, run: Run) -> None:
    for n, store in enumerate((near, far)):
        run(store.create(f"durable/{n}", b"x"))
        run(store.create(f"loose/{n}", b"x", durable=False))
        run(store.put(f"put/{n}", b"x"))
    files = {str(path.relative_to(place)): path.stat() for path in place.rglob("*") if path.is_file()}
    assert set(files) == {"format", *(f"{way}/{n}" for way in ("durable", "loose", "put") for n in (0, 1))}
    assert {found.st_nlink for found in files.values()} == {1}
    assert len({found.st_mode for found in files.values()}) == 1
    assert [item.key for item in run(near.list(""))] == [item.key for item in run(far.list(""))] == sorted(files)


@pytest.mark.slow
def test_near_and_far_race_and_one_wins(place: Path, near: Store, far: Store, run: Run) -> None:
    """Four processes on each side want the same keys."""
    keys = 120
    winner = race([str(place), f"ssh://there{place}"] * 4, keys)
    assert len(winner) == keys
    for key, value in winner.items():
        assert run(near.get(f"race/{key % 7}/{key}")) == run(far.get(f"race/{key % 7}/{key}")) == value
    assert list((place / "tmp").iterdir()) == []


@pytest.mark.parametrize("writer_is_far", [True, False])
def test_every_heartbeat_is_seen(near: Store, far: Store, run: Run, writer_is_far: bool) -> None:
    """Replaced many times within a second, by as many bytes, while its readers read it: each listing tells."""
    writer = far if writer_is_far else near
    for reader in (near, far):
        seen = []
        for n in range(60):
            run(writer.put("beat", f"{n:04d}".encode()))
            [item] = run(reader.list("beat"))
            assert run(reader.get("beat")) == f"{n:04d}".encode()
            assert run(reader.list("beat")) == [item]  # reading changes nothing
            seen.append(item.version)
        assert len(set(seen)) == 60


def test_files_that_were_put_are_seen_as_new(near: Store, far: Store, run: Run, tmp_path: Path) -> None:
    for writer in (near, far):
        for reader in (near, far):
            versions = set()
            for n in range(10):
                (tmp_path / "file").write_bytes(f"{n}".encode())
                run(writer.put_file("f", tmp_path / "file"))
                versions.add(run(reader.list("f"))[0].version)
            assert len(versions) == 10


def test_what_dead_writers_left_is_removed(place: Path, far: Store, run: Run) -> None:
    for name, age in (("00000000dead.0", 3 * 24 * 3600), ("00000000beef.0", 0)):
        path = place / "tmp" / name
        path.write_bytes(b"half")
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    run(far.remove_stale())
    assert run(far.get("format"))  # asked after, answered after
    assert [path.name for path in (place / "tmp").iterdir()] == ["00000000beef.0"]


@pytest.mark.slow
def test_many_files_at_once_arrive_whole(place: Path, far: Store, run: Run, tmp_path: Path) -> None:
    """More than wait for a sync together, more than are open together; into many directories that are not there."""
    source = tmp_path / "source"
    source.mkdir()
    for n in range(1500):
        (source / str(n)).write_bytes(f"{n}".encode() * (n % 300))

    async def upload() -> None:
        await asyncio.gather(*(far.put_file(f"files/{n % 256:02x}/{n}", source / str(n)) for n in range(1500)))

    async def download() -> None:
        await asyncio.gather(*(far.get_file(f"files/{n % 256:02x}/{n}", tmp_path / f"back-{n}") for n in range(1500)))

    run(upload())
    assert len(run(far.list("files/"))) == 1500
    run(download())
    for n in range(1500):
        found = place / "files" / f"{n % 256:02x}" / str(n)
        assert found.read_bytes() == (tmp_path / f"back-{n}").read_bytes() == (source / str(n)).read_bytes()
        assert found.stat().st_nlink == 1
    assert list((place / "tmp").iterdir()) == []


def test_a_store_begun_by_ssh_is_the_one_that_the_directory_has(near: Store, far: Store, run: Run) -> None:
    assert run(near.get("format")) == run(far.get("format"))
    assert isinstance(run(create_object(near, "k", b"near")), Won)
    assert run(far.create("k", b"far")) is False
