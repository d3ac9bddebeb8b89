"""Holes of a file stay holes on its way to a store in a directory and back, and its bytes are the same."""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path

import pytest

from monkey.errors import ObjectTooLarge
from monkey.store.directory.publish import copy_bytes
from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.loops import Run

SIZE = 8 << 20


def write_sparse(path: Path, extents: list[tuple[int, bytes]], size: int = SIZE) -> None:
    with path.open("wb") as file:
        file.truncate(size)
        for at, data in extents:
            file.seek(at)
            file.write(data)


RANDOM = random.Random(7)
FILES = {
    "only a hole": [],
    "data at the end": [(SIZE - 5, b"e" * 5)],
    "data at the beginning": [(0, b"b" * 5000)],
    "data in the middle": [(SIZE // 2 + 17, RANDOM.randbytes(100_000))],
    "many": [(RANDOM.randrange(SIZE - 9000), RANDOM.randbytes(RANDOM.randrange(1, 9000))) for _ in range(40)],
    "no hole": [(0, RANDOM.randbytes(SIZE))],
}


@pytest.mark.parametrize("what", FILES)
def test_bytes_and_holes_are_those_of_the_source(tmp_path: Path, what: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    write_sparse(source, FILES[what])
    if source.stat().st_blocks * 512 >= SIZE and what != "no hole":
        pytest.skip("this file system has no holes")
    read, write = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT)
    copy_bytes(read, write)
    os.close(read)
    os.close(write)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_blocks <= source.stat().st_blocks + 64


def test_a_sparse_output_takes_no_room_in_the_store_nor_when_it_comes_back(
    store: Store, root: Path, run: Run, tmp_path: Path
) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    write_sparse(source, [(5 << 30, b"data")], size=8 << 30)
    run(store.put_file("out/sparse", source))
    run(store.get_file("out/sparse", back))
    for path in (root / "out/sparse", back):
        assert path.stat().st_size == 8 << 30 and path.stat().st_blocks * 512 < 1 << 20
        with path.open("rb") as file:
            file.seek((5 << 30) - 2)
            assert file.read(8) == b"\0\0data\0\0"


def test_a_hole_of_sixty_gigabytes_is_not_read(tmp_path: Path, run: Run) -> None:
    store = run(open_store(str(tmp_path / "s"), begin=True))
    run(store.put("projects/p/sweeps/s/00000001", b"x"))
    os.truncate(tmp_path / "s/projects/p/sweeps/s/00000001", 60 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(ObjectTooLarge, match="64,424,509,440"):
            run(store.get("projects/p/sweeps/s/00000001"))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    run(store.close())
