"""A file is replaced whole or not at all, whatever happens to its writer."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monkey.atomic_write import SUFFIX, create_atomically, write_atomically, write_named_file

#: Replaces one file by 4 MiB of one letter after the other, for ever.
WRITER = """
import itertools, sys
from monkey.atomic_write import write_atomically
for letter in itertools.cycle(b"abc"):
    write_atomically(sys.argv[1], bytes([letter]) * (4 << 20))
    print("once", flush=True)
"""


def test_it_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "Grüße\n", mode=0o600, durable=True)
    assert path.read_text(encoding="utf-8") == "Grüße\n" and stat.S_IMODE(path.stat().st_mode) == 0o600
    write_atomically(str(path), b"\0")
    assert path.read_bytes() == b"\0" and list(tmp_path.iterdir()) == [path]


def test_where_it_fails_the_old_file_stays(tmp_path: Path) -> None:
    (tmp_path / "directory" / "in it").mkdir(parents=True)
    with pytest.raises(OSError):
        write_atomically(tmp_path / "directory", b"data")
    assert [each.name for each in tmp_path.iterdir()] == ["directory"]
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "file", b"data")


def test_a_pipe_that_a_user_named_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as readers:
        read = readers.submit(pipe.read_bytes)
        write_named_file(pipe, "Grüße")
        assert read.result(timeout=60) == "Grüße".encode()
    assert stat.S_ISFIFO(pipe.lstat().st_mode) and list(tmp_path.iterdir()) == [pipe]


def test_a_link_that_a_user_named_stays_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere/file")
    for data in (b"new", b"newer"):
        write_named_file(tmp_path / "link", data)
        assert (tmp_path / "elsewhere" / "file").read_bytes() == data and (tmp_path / "link").is_symlink()
    with pytest.raises(IsADirectoryError):
        write_named_file(tmp_path / "elsewhere", b"data")


@pytest.mark.parametrize("moment", range(3))
def test_a_reader_sees_no_half_though_the_writer_is_killed(moment: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        for _ in range(2 + moment):
            writer.stdout.readline()
            seen = path.read_bytes()
            assert len(seen) == 4 << 20 and len(set(seen)) == 1
        writer.send_signal(signal.SIGKILL)
    seen = path.read_bytes()
    assert len(seen) == 4 << 20 and len(set(seen)) == 1
    beside = [each.name for each in tmp_path.iterdir() if each != path]
    assert all(name.startswith(".") and name.endswith(SUFFIX) for name in beside)


def test_a_file_is_created_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert create_atomically(path, "first", mode=0o600) and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not create_atomically(path, "second")
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        create_atomically(tmp_path / "none" / "file", b"data")


def test_of_many_that_create_one_wins_and_all_read_the_same(tmp_path: Path) -> None:
    path, start = tmp_path / "file", threading.Barrier(8)

    def create(number: int) -> tuple[bool, str]:
        start.wait()
        return create_atomically(path, f"{number}" * 1000), path.read_text()

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(create, range(8)))
    assert sum(won for won, _ in made) == 1 and {text for _, text in made} == {path.read_text()}
