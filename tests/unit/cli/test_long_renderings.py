"""Output of many rows is written in pieces, outside of the event loop: Ctrl-C ends it after the piece in hand."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from pathlib import Path

import pytest

from monkey.cli.main import run_guarded
from tests.unit.apply.small_project import apply, opened, write_project

JOBS = 2_500
SPEC = f"""\
name: small
command: python3 train.py --lr {{lr}}
parameters:
  lr: {{range: [0, {JOBS}]}}
metric: {{name: loss}}
"""


class Interrupted(io.StringIO):
    """A standard output at whose first piece the user presses Ctrl-C."""

    def write(self, text: str) -> int:
        assert asyncio._get_running_loop() is None, "the loop's handlers would wait for the end of the rendering"
        written = super().write(text)
        if text.count("\n") > 1:
            os.kill(os.getpid(), signal.SIGINT)
        return written


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    async def prepare() -> None:
        async with opened(root) as world:
            await apply(world)

    root = tmp_path_factory.mktemp("project")
    write_project(root, SPEC)
    asyncio.run(prepare())
    return root


@pytest.mark.parametrize(
    "verb",
    ["results", "results --csv", "results --json", "results --group-by lr --csv", "list jobs", "list jobs --json"],
)
def test_an_interrupt_ends_a_long_rendering_after_the_piece_in_hand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path, verb: str
) -> None:
    monkeypatch.chdir(project)
    out = Interrupted()
    monkeypatch.setattr(sys, "stdout", out)
    assert run_guarded(verb.split()) == 130
    assert 1 < out.getvalue().count("\n") < JOBS
    assert "interrupted" in capsys.readouterr().err
