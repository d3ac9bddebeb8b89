"""Small files of JSON that a job may have replaced: none makes the agent wait, fail, or fill its memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.protocol.record.history_parts import parse_parts
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.untrusted_files import load_json, walk_tree
from monkey_agent.checkpoints.captures import SEEN, read_capture
from monkey_agent.ports import Attempt
from monkey_agent.uploads.attempt_history import PARTS, load_history

#: JSON that takes the parser deeper than it can go.
DEEP = "[" * 100_000


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": [1]}')
    assert load_json(f"{tmp_path}/a", 10) == {"a": [1]}


def test_a_pipe_and_a_link_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("{}")
    (tmp_path / "link").symlink_to("file")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match=name):
            load_json(f"{tmp_path}/{name}", 10)


def test_no_more_is_read_than_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": [1]} ')
    with pytest.raises(ValueError, match="has more than 10 bytes"):
        load_json(f"{tmp_path}/a", 10)


def test_lists_within_lists_without_end_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(DEEP)
    with pytest.raises(ValueError, match="too deep"):
        load_json(f"{tmp_path}/a", len(DEEP))


def test_a_capture_and_a_history_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    for name in (SEEN, PARTS):
        (tmp_path / name).write_text(DEEP)
    assert read_capture(str(tmp_path)) is None
    recipe = Recipe("true", "0" * 64)
    assert load_history(Attempt("a" * 16, 1, "sweep", recipe, SweepSettings(), {}, 1, 1), str(tmp_path)) is None


def test_a_table_is_no_list_of_parts() -> None:
    with pytest.raises(TypeError, match="list"):
        parse_parts({"k": 1})


def test_walk_passes_over_a_directory_that_is_gone_meanwhile(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    seen = []
    for directory, _, _ in walk_tree(str(tmp_path)):
        seen.append(directory)
        if directory == str(tmp_path):
            (tmp_path / "a").rmdir()
    assert seen == [str(tmp_path), str(tmp_path / "b")]
