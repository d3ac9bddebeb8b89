"""Syncing batches: who failed is named, few or many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.store.directory.disk_sync import _MANY, DirectorySyncer


@pytest.mark.parametrize("count", [1, _MANY + 5])
def test_what_can_be_synced_is(tmp_path: Path, count: int) -> None:
    fds = [os.open(tmp_path / str(n), os.O_WRONLY | os.O_CREAT) for n in range(count)]
    directories = [str(tmp_path)] * count
    try:
        assert DirectorySyncer().files(fds) == {}
        assert DirectorySyncer().directories(directories, fds[0]) == {}
    finally:
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize("count", [1, _MANY + 5])
def test_who_fails_is_named_and_the_others_are_synced(tmp_path: Path, count: int) -> None:
    fds = [os.open(tmp_path / str(n), os.O_WRONLY | os.O_CREAT) for n in range(count)]
    os.close(fds[-1])
    failed = DirectorySyncer().files(fds)
    for fd in fds[:-1]:
        os.close(fd)
    assert list(failed) == [fds[-1]]


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
    try:
        assert list(DirectorySyncer().directories([str(tmp_path), gone], fd)) == [gone]
    finally:
        os.close(fd)
