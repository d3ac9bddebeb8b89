"""The state directory of a sync."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.apply.sync import sync_directory
from monkey.apply.sync.sync_directory import SyncDirectory, SyncMemo
from monkey.errors import MonkeyError


def test_a_second_sync_in_the_directory_is_refused(directory: SyncDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_directory, "_LOCK_WAIT", 0.0)
    second = SyncDirectory(directory.path, "sweeps")
    with pytest.raises(MonkeyError, match="another sync is at work in"):
        second.open()
    second.close()


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MonkeyError, match="cannot be made") as caught:
        SyncDirectory(tmp_path / "file" / "state", "sweeps").open()
    assert "--directory" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["", "garbage", "[]", '{"store": 1}', '{"what": ""}', '{"store": 1, "project": "p"}'])
def test_a_memo_that_cannot_be_read_is_forgotten(directory: SyncDirectory, text: str) -> None:
    memo = SyncMemo("/store", "p", "a" * 40, 5.0)
    directory.write_memo(memo)
    assert directory.read_memo() == memo
    (directory.path / "memo.json").write_text(text)
    assert directory.read_memo() == SyncMemo()
