"""`monkey history` as a table: each value stands below its own header."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.cli.main import run_guarded
from tests.git_command import git
from tests.unit.apply.small_project import apply, opened, write_project


def test_the_branch_has_a_column_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path)
    (tmp_path / ".gitignore").write_text(".monkey/\n")
    git(tmp_path, "init", "-q", "-b", "trunk")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")

    async def main() -> None:
        async with opened(tmp_path) as world:
            await apply(world)

    asyncio.run(main())
    monkeypatch.chdir(tmp_path)
    assert run_guarded(["history", "small"]) == 0
    head, line = capsys.readouterr().out.splitlines()[:2]
    assert "  BRANCH  PULL  " in head and line[head.index("BRANCH") :].startswith("trunk   ")
    assert line[head.index("PULL") :].startswith("    ")
