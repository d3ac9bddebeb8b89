"""Code snapshots: what is in the hash, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.errors import PlanError
from monkey.store.memory import MemoryStore
from monkey.transfer.code.code_manifest import MAX_FILE
from monkey.transfer.code.code_snapshot import (
    CodeSnapshot,
    extract_snapshot,
    pack_code,
    read_code,
    spell_code_key,
    upload_code,
)
from tests.unit.transfer.conftest import write


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return a directory with a file, a program and two links."""
    root = tmp_path / "code"
    write(root, train_py="train", lib__model_py="model")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "lib" / "up").symlink_to("../train.py")
    (root / "linked").symlink_to("lib")
    return root


def packed(taken: CodeSnapshot) -> bytes:
    """Return the archive."""
    into = io.BytesIO()
    pack_code(taken, into)
    return into.getvalue()


def test_a_snapshot_names_its_files(code: Path) -> None:
    taken = read_code(code)
    assert list(taken.files) == ["lib/model.py", "lib/up", "linked", "run.sh", "train.py"]
    assert {len(digest) for digest in [*taken.files.values(), taken.hash]} == {64}
    assert taken.files["train.py"] == hashlib.sha256(b"train").hexdigest()
    assert taken.size == len("train") + len("model") + len("#!/bin/sh\n")


#: Plans, writes to its output, and packs what was planned: fails where the output is part of it.
WRITES_WHILE_PLANNING = """
import io, sys
from pathlib import Path
from monkey.transfer.code.code_snapshot import pack_code, read_code
out = getattr(sys, sys.argv[1])
print("a plan", file=out, flush=True)
taken = read_code(Path.cwd())
print("and more of it", file=out, flush=True)
pack_code(taken, io.BytesIO())
Path("../said").write_text(f"{' '.join(taken.files)} {taken.left_out}")
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_files_that_our_own_output_goes_to_are_left_out(code: Path, stream: str) -> None:
    before = read_code(code).files
    with (code / "out.txt").open("w") as out:
        command = [sys.executable, "-c", WRITES_WHILE_PLANNING, stream]
        streams = {"stdout": None, "stderr": None, stream: out}
        done = subprocess.run(command, cwd=code, stdout=streams["stdout"], stderr=streams["stderr"], check=False)
    assert done.returncode == 0, (code / "out.txt").read_text()
    assert (code.parent / "said").read_text() == f"{' '.join(before)} ('out.txt',)"


def test_equal_code_has_one_hash_and_one_archive(code: Path, tmp_path: Path) -> None:
    """Whatever the place, the times, the rights beside x, and the order in which files were made."""
    other = tmp_path / "elsewhere" / "copy"
    shutil.copytree(code, other, symlinks=True)
    for path in sorted(other.rglob("*"), reverse=True):
        if not path.is_symlink() and path.is_file():
            os.utime(path, (1, 1))
            path.chmod(0o700 if path.suffix == ".sh" else 0o600)
    assert read_code(other).hash == read_code(code).hash
    assert packed(read_code(other)) == packed(read_code(code))


def test_the_hash_is_what_it_always_was(code: Path) -> None:
    """Stored results are found by it: a change here makes every job of everybody stale."""
    assert read_code(code).hash == "7569b7caa90e63dc0f17f053f263c33c998b4bb7ae0e82a263dd1301ed596b4e"


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "train.py").write_text("Train"),
        lambda root: (root / "train.py").rename(root / "Train.py"),
        lambda root: (root / "train.py").chmod(0o755),
        lambda root: (root / "new.py").write_text(""),
        lambda root: (root / "lib" / "model.py").unlink(),
        lambda root: ((root / "linked").unlink(), (root / "linked").symlink_to("./lib")),
        lambda root: ((root / "linked").unlink(), (root / "linked").write_text("lib")),
    ],
)
def test_any_change_of_code_changes_the_hash_and_names_the_file(code: Path, change: Callable[[Path], object]) -> None:
    before = read_code(code)
    change(code)
    after = read_code(code)
    assert after.hash != before.hash
    assert after.files != before.files


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../outside", "lib/../../outside", "linked/../../outside", "sub/d/../.."]
)
def test_a_link_that_leads_out_is_refused(code: Path, target: str) -> None:
    (code / "sub").mkdir()
    (code / "sub" / "d").symlink_to("..")  # text stays inside, and so a path through it leads further up
    (code / "bad").symlink_to(target)
    with pytest.raises(PlanError, match="leads out of the code") as caught:
        read_code(code)
    assert "bad" in caught.value.message
    assert caught.value.hint


def test_a_link_to_nothing_inside_is_kept(code: Path) -> None:
    (code / "later").symlink_to("made/by/the/job")
    assert "later" in read_code(code).files


def test_a_name_that_is_not_utf8_is_refused(code: Path) -> None:
    Path(os.fsdecode(os.fsencode(code) + b"/caf\xe9.py")).write_text("x")
    with pytest.raises(PlanError, match=r"caf\\xe9.*not UTF-8"):
        read_code(code)


def test_a_pipe_is_refused_and_never_opened(code: Path) -> None:
    os.mkfifo(code / "pipe")
    with pytest.raises(PlanError, match="found a device or a pipe"):
        read_code(code)


def test_a_large_file_is_refused_with_advice(code: Path) -> None:
    with (code / "weights.bin").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(PlanError, match=r"weights\.bin has 50,000,001 bytes, .* 50,000,000 a file") as caught:
        read_code(code)
    assert "dataset" in (caught.value.hint or "")
    assert read_code(code, ["**/*.py"]).size == 10


def test_much_in_all_is_refused(code: Path) -> None:
    size = read_code(code).size
    assert read_code(code, max_total=size).size == size
    with pytest.raises(PlanError, match="too large for a snapshot"):
        read_code(code, max_total=size - 1)


def test_a_file_without_rights_is_named(code: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (code / "train.py").chmod(0)
    with pytest.raises(PlanError, match=r"cannot read .*train\.py"):
        read_code(code)


def test_a_file_that_is_written_meanwhile_is_noticed(code: Path) -> None:
    busy, stop = code / "busy", threading.Event()
    busy.write_bytes(bytes(MAX_FILE))  # so large that the writer has a turn in most readings

    def write_on() -> None:
        for n in itertools.count():
            if stop.is_set():
                return
            os.utime(busy, ns=(n, n))  # a kernel's clock of files stands still for milliseconds

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        with pytest.raises(PlanError, match="busy changes while it is read"):
            for _ in range(100):  # on a machine with much to do, one may be over before that
                read_code(code)
    finally:
        stop.set()
        writer.join()
    assert "busy" in read_code(code).files


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "train.py").write_text("Train"),
        lambda root: (root / "train.py").unlink(),
        lambda root: ((root / "linked").unlink(), (root / "linked").symlink_to("train.py")),
        lambda root: ((root / "train.py").unlink(), (root / "train.py").symlink_to("run.sh")),
    ],
)
def test_code_that_changed_since_the_plan_is_not_uploaded(code: Path, change: Callable[[Path], object]) -> None:
    taken = read_code(code)
    change(code)
    store = MemoryStore()
    with pytest.raises(PlanError, match="changed since the plan was made"):
        asyncio.run(upload_code(store, taken))
    assert store.state.objects == {}


def test_an_upload_happens_once_and_comes_back(code: Path, tmp_path: Path) -> None:
    taken, store = read_code(code), MemoryStore()

    async def there_and_back() -> tuple[int, int]:
        sent = await upload_code(store, taken), await upload_code(store, taken)
        await store.get_file(spell_code_key(taken.hash), tmp_path / "archive")
        return sent

    sent, again = asyncio.run(there_and_back())
    assert (sent, again) == ((tmp_path / "archive").stat().st_size, 0)
    extract_snapshot(tmp_path / "archive", tmp_path / "back", taken.hash)
    assert read_code(tmp_path / "back").hash == taken.hash
    assert (tmp_path / "back" / "linked" / "model.py").read_text() == "model"
    assert os.access(tmp_path / "back" / "run.sh", os.X_OK)


def test_nothing_selected_is_a_snapshot_too(tmp_path: Path) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    taken = read_code(root)
    (tmp_path / "archive").write_bytes(packed(taken))
    extract_snapshot(tmp_path / "archive", tmp_path / "back", taken.hash)
    assert list((tmp_path / "back").iterdir()) == []
