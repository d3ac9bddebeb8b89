"""Captures: whole, or none; and nothing half-made stays."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from monkey.untrusted_files import HeldDirectory
from monkey_agent.checkpoints.captures import TREE, Capture, read_capture, take_capture
from monkey_agent.checkpoints.directory_scan import DirectoryScan, scan_path

#: Files of a checkpoint that takes a moment to copy.
COUNT = 40
#: Captures until one meets the writer, at most.
TRIES = 200


def take(directory: Path, root: Path, before: DirectoryScan | None = None, *, copies: bool = False) -> Capture | None:
    """Capture a directory as it is, or as it was `before`."""
    return take_capture(
        str(directory), scan_path(str(directory)) if before is None else before, str(root), copies=copies
    )


@pytest.mark.parametrize("copies", [False, True])
def test_checkpoint_that_is_replaced_while_it_is_captured_is_not_kept_torn(tmp_path: Path, copies: bool) -> None:
    job = tmp_path / "job"
    job.mkdir()
    for n in range(COUNT):
        (job / f"{n:02}").write_bytes(b"x")

    def replace(begun: Path, step: int) -> None:
        while not begun.exists():
            pass
        (job / "new").write_bytes(b"x" * step)
        (job / "new").replace(job / f"{COUNT - 1:02}")

    for step in range(2, TRIES):
        root = tmp_path / f"capture{step}"
        writer = threading.Thread(target=replace, args=(root / TREE, step))
        before = scan_path(str(job))
        writer.start()
        capture = take(job, root, before, copies=copies)
        (root / TREE).mkdir(parents=True, exist_ok=True)  # whatever became of it, the writer ends
        writer.join()
        if capture is None:
            return
        assert capture.is_whole and read_capture(str(root))
    pytest.fail("no capture met the writer")


def test_job_that_removed_its_directory_has_an_empty_checkpoint_if_it_was_empty_before(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    capture = take(gone, tmp_path / "capture")
    assert capture and capture.tree == DirectoryScan()
    assert read_capture(str(tmp_path / "capture")) == capture
    (tmp_path / "file").write_bytes(b"x")
    with HeldDirectory(str(tmp_path)):
        before = scan_path(str(tmp_path))
    assert before.files
    assert take(gone, tmp_path / "none", before) is None
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("copies", [False, True])
def test_capture_that_the_disk_refuses_is_told_and_leaves_nothing(tmp_path: Path, copies: bool) -> None:
    job, root = tmp_path / "job", tmp_path / "capture"
    job.mkdir()
    (job / "state").write_bytes(b"x")
    (root / TREE).mkdir(parents=True)
    (root / TREE / "state").write_bytes(b"of another")
    with pytest.raises(FileExistsError):
        take(job, root, copies=copies)
    assert not root.exists()
