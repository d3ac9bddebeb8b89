"""Datasets: DVC's own ids, hostile trees, what is remembered."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.errors import CorruptObject, DatasetError
from monkey.transfer.datasets.dataset import Dataset, count_changed_files, read_listing, write_listing
from monkey.transfer.datasets.hashing import check_unchanged, hash_dataset

NAMES = ["a", "sub/z", "sub.z", 'ünï"\\.txt', "new\nline", "a b/c", "日本/🐒", "empty", "\x7f\t"]


def tree(root: Path, names: list[str] = NAMES) -> Path:
    """Make a directory of small files; an empty one among them."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name == "empty" else f"content {number % 5}".encode())
    return root


def age(root: Path) -> None:
    """Wait until a change of any file would show in its times."""
    newest = max(path.lstat().st_ctime_ns for path in root.rglob("*"))
    while time.time_ns() < newest + 50_000_000:
        time.sleep(0.01)


def dvc_oid(path: Path) -> str:
    """Return what dvc-data itself makes of the path."""
    program = (
        "import sys; from dvc_data.hashfile.build import build; from dvc_objects.fs.local import localfs\n"
        "from dvc_data.hashfile.db.local import LocalHashFileDB\n"
        "odb = LocalHashFileDB(localfs, sys.argv[2])\n"
        "tree = build(odb, sys.argv[1], localfs, 'md5', dry_run=True)[2]\n"
        "sys.stdout.buffer.write(tree.hash_info.value.encode() + b'\\n' + getattr(tree, 'as_bytes', bytes)())"
    )
    words = [sys.executable, "-c", program, str(path), str(path.with_name("odb"))]
    return subprocess.run(words, check=True, capture_output=True).stdout.decode()


@pytest.mark.needs("dvc")
def test_ids_and_listings_are_those_of_dvc(tmp_path: Path) -> None:
    """The golden test of what a stdlib writer must get right, against the real thing."""
    root = tree(tmp_path / "data")
    (root / "link").symlink_to("a")
    dataset = hash_dataset(root, tmp_path / "state")
    oid, _, text = dvc_oid(root).partition("\n")
    assert (dataset.oid, dataset.listing.decode()) == (oid, text)
    single = hash_dataset(root / "a", tmp_path / "state")
    assert single.oid == dvc_oid(root / "a").strip() and single.is_file


@pytest.mark.needs("dvc")
def test_a_large_file_is_hashed_like_a_small_one(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "large").write_bytes(os.urandom(1000) * 9000)
    (tmp_path / "data" / "small").write_bytes(b"x")
    told: list[int] = []
    dataset = hash_dataset(tmp_path / "data", tmp_path / "state", lambda objects, size: told.append(size))
    assert dataset.oid == dvc_oid(tmp_path / "data").partition("\n")[0]
    assert sum(told) == dataset.size == 9_000_001


@pytest.mark.needs("dvc")
def test_many_files_are_hashed_by_several_processes(tmp_path: Path) -> None:
    root = tree(tmp_path / "data", [f"{n % 7}/{n:05d}" for n in range(1500)])
    assert hash_dataset(root, tmp_path / "state").oid == dvc_oid(root).partition("\n")[0]


def test_a_listing_is_read_back() -> None:
    data = write_listing(["a", 'b"c'], ["0" * 32, "1" * 32])
    assert json.loads(data) == [{"md5": "0" * 32, "relpath": "a"}, {"md5": "1" * 32, "relpath": 'b"c'}]
    assert read_listing(data, "x.dir") == {"a": "0" * 32, 'b"c': "1" * 32}
    for bad in (b"", b"{}x", b"[1]", b'[{"md5": "0"}]'):
        with pytest.raises(CorruptObject, match="lists no directory"):
            read_listing(bad, "ab" * 16 + ".dir")


def test_changed_files_are_counted() -> None:
    before = {"a": "1", "b": "2", "c": "3"}
    assert count_changed_files(before, before) == 0
    assert count_changed_files(before, {"a": "1", "b": "x", "d": "3"}) == 3


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may have no more than a hundred bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "found a pipe"),
        (_socket, "found a socket"),
        (lambda path: path.symlink_to("/dev/null"), "found a device"),
        (lambda path: path.symlink_to(path.name), "leads in a circle"),
        (lambda path: path.symlink_to("nowhere"), "leads nowhere: to 'nowhere'"),
        (lambda path: path.symlink_to(".."), "link to a directory, which DVC would leave out"),
        (lambda path: Path(os.fsdecode(bytes(path) + b"\xff")).write_bytes(b""), "is not UTF-8"),
        (lambda path: Path(os.fsdecode(bytes(path) + b"\xff")).mkdir(), "is not UTF-8"),
    ],
    ids=["pipe", "socket", "device", "loop", "dangling", "directory", "bytes", "bytes-directory"],
)
def test_what_has_no_bytes_or_name_is_refused(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    root = tree(tmp_path / "data")
    make(root / "sub" / "strange")
    with pytest.raises(DatasetError, match=message) as refused:
        hash_dataset(root, tmp_path / "state")
    assert "strange" in refused.value.message and refused.value.hint


def test_nothing_and_no_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="there is no"):
        hash_dataset(tmp_path / "data", tmp_path / "state")
    (tmp_path / "data" / "empty").mkdir(parents=True)
    with pytest.raises(DatasetError, match="expected files in"):
        hash_dataset(tmp_path / "data", tmp_path / "state")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DatasetError, match="expected a file or a directory"):
        hash_dataset(tmp_path / "pipe", tmp_path / "state")


def test_an_unreadable_file_is_named(tmp_path: Path, require: Callable[[str], str]) -> None:
    require("unprivileged")
    root = tree(tmp_path / "data")
    (root / "a").chmod(0)
    program = (
        "import sys; from pathlib import Path; from monkey.errors import DatasetError\n"
        "from monkey.transfer.datasets.hashing import hash_dataset\n"
        "try: hash_dataset(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except DatasetError as exc: print(exc.message)"
    )
    words = [sys.executable, "-c", program, str(root), str(tmp_path / "state")]
    if os.geteuid() == 0:  # root may read anything, unless it gives that up
        words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot read {root / 'a'}: Permission denied\n"


def test_a_second_look_reads_no_file(tmp_path: Path) -> None:
    root, state = tree(tmp_path / "data"), tmp_path / "state"
    age(root)
    first = hash_dataset(root, state)
    before = {path: path.stat().st_atime_ns for path in root.rglob("*") if path.is_file()}
    read: list[int] = []
    assert hash_dataset(root, state, lambda objects, size: read.append(objects)) == first
    assert read == [] and before == {path: path.stat().st_atime_ns for path in before}


@pytest.mark.needs("dvc")
def test_of_a_changed_dataset_only_what_changed_is_read(tmp_path: Path) -> None:
    root, state = tree(tmp_path / "data"), tmp_path / "state"
    age(root)
    first = hash_dataset(root, state)
    (root / "a").write_bytes(b"changed")
    (root / "b").write_bytes(b"added")
    (root / "empty").unlink()
    age(root)
    read: list[int] = []
    second = hash_dataset(root, state, lambda objects, size: read.append(objects))
    assert sum(read) == 2 and second.oid == dvc_oid(root).partition("\n")[0] != first.oid


def test_an_edit_that_keeps_size_and_mtime_is_noticed(tmp_path: Path) -> None:
    root, state = tree(tmp_path / "data"), tmp_path / "state"
    age(root)
    first, known = hash_dataset(root, state), (root / "a").stat()
    (root / "a").write_bytes(b"CONTENT 0")
    os.utime(root / "a", ns=(known.st_atime_ns, known.st_mtime_ns))
    assert hash_dataset(root, state).oid != first.oid


def test_what_was_written_just_now_is_not_taken_for_settled(tmp_path: Path) -> None:
    """Two writes within one tick of the clock leave the same times."""
    root, state = tmp_path / "data", tmp_path / "state"
    root.mkdir()
    for number in range(60):
        (root / "a").write_bytes(b"%08d" % number)
        assert hash_dataset(root, state).md5s[0] == dvc_md5(b"%08d" % number)


def dvc_md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.mark.parametrize("damage", [b"", b"monkey dataset 1\n", b"\0" * 300, b"cut"])
def test_a_damaged_state_is_none(tmp_path: Path, damage: bytes) -> None:
    root, state = tree(tmp_path / "data"), tmp_path / "state"
    age(root)
    first = hash_dataset(root, state)
    (path,) = state.iterdir()
    path.write_bytes(path.read_bytes()[:-1] if damage == b"cut" else damage)
    read: list[int] = []
    assert hash_dataset(root, state, lambda objects, size: read.append(objects)) == first
    assert sum(read) == len(NAMES)
    read.clear()
    hash_dataset(root, state, lambda objects, size: read.append(objects))
    assert not read, "and it is made anew"


def test_a_state_that_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert hash_dataset(tree(tmp_path / "data"), tmp_path / "file" / "state").oid


def test_a_change_between_two_looks_is_noticed(tmp_path: Path) -> None:
    root = tree(tmp_path / "data")
    dataset: Dataset = hash_dataset(root, tmp_path / "state")
    check_unchanged(dataset)
    (root / "a").write_bytes(b"changed")
    with pytest.raises(DatasetError, match=r"/a changed"):
        check_unchanged(dataset)


@pytest.mark.needs("dvc")
def test_a_cache_that_dvc_has_no_plugin_for_is_said(tmp_path: Path) -> None:
    root = tree(tmp_path / "project" / "data")
    (root.parent / ".dvc").mkdir()
    (root.parent / ".dvc/config").write_text('[core]\nno_scm = true\n[cache]\nlocal = r\n[remote "r"]\nurl = oss://b\n')
    with pytest.raises(DatasetError, match=r"DVC says of .*oss is supported, but requires 'dvc-oss'"):
        hash_dataset(root, tmp_path / "state")
    gc.collect()  # from 3.13 on, a database that was not closed is told here
