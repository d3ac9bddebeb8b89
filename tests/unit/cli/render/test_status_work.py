"""How much `monkey status` does of each job that has ended, by calls: a clock says little on a busy machine."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import FrameType

import pytest

from monkey.cli.render.status_lines import format_status
from monkey.cli.terminal.text import Terminal
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.status.store_snapshot import StoreSnapshot
from tests.page.serving import end_all
from tests.unit.apply.small_project import SPEC, Pen, apply, opened, write_project

FAILED = 4


def count_calls(snapshot: StoreSnapshot) -> tuple[int, list[str]]:
    """Return how many functions of Python a status of the only sweep calls, and what it says."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        lines = format_status("/store", snapshot, list(snapshot.sweeps.values()), Terminal())
    finally:
        sys.setprofile(None)
    return calls, lines


def read(root: Path, side: int) -> StoreSnapshot:
    """Return a snapshot of a sweep of side × side jobs, succeeded with metrics but for a few that failed."""

    async def main() -> StoreSnapshot:
        async with opened(root) as world:
            ids = list((await apply(world)).wanted[0].desired.table.ids)
            await end_all(world, ids[FAILED:])
            pen = Pen(world, "local/other/1")
            for job in ids[:FAILED]:
                await pen.begin(job)
                await pen.end(job, ClaimEnd.FAILED, reason="exit code 1", exit_code=1, log_tail=["KeyError: 'a'"])
            return await world.reader().read()

    root.mkdir()
    values = f"{{range: [0, {side}]}}"
    spec = SPEC.replace("{lr}", "{lr} {seed}").replace("[1, 2, 3]", f"{values}\n  seed: {values}")
    write_project(root, spec)
    return asyncio.run(main())


def test_status_calls_no_function_for_each_job_that_has_succeeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    few, many = read(tmp_path / "few", 10), read(tmp_path / "many", 40)
    count_calls(few)  # loads modules
    less, _ = count_calls(few)
    more, lines = count_calls(many)
    assert f"{FAILED} jobs failed: exit code 1" in "\n".join(lines)
    assert (more - less) / (40 * 40 - 10 * 10) < 0.5
