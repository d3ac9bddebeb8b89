"""`monkey report` as people type it: one file, whole, and clear words where there is none."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from monkey.cli.main import run_guarded
from tests.unit.apply.small_project import Pen, apply, opened, write_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of three jobs, of which one has ended."""

    async def prepare() -> None:
        async with opened(tmp_path) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            pen = Pen(world)
            await pen.begin(jobs[0])
            await pen.end(jobs[0])

    write_project(tmp_path)
    asyncio.run(prepare())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_one_file_and_nothing_else(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "report.html").write_text("old")
    before = set(project.rglob("*"))
    assert run_guarded(["report", "small"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("report.html written: 3 jobs, 0 curves of at most 600 points, 0.") and not err
    assert set(project.rglob("*")) == before, "the store is only read, and no file is left beside"
    assert (project / "report.html").read_bytes().startswith(b"<!doctype html>")
    assert run_guarded(["report", "small", "small", "-o", "again.html"]) == 0
    assert (project / "again.html").read_bytes() == (project / "report.html").read_bytes()


def test_what_is_not_there_is_said_and_no_file_is_written(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["report", "smal"]) == 1
    assert "there is no sweep 'smal'" in (err := capfd.readouterr().err) and "did you mean 'small'" in err
    assert run_guarded(["report", "small", "-o", "missing/x.html"]) == 1
    assert "missing/x.html cannot be written: No such file" in capfd.readouterr().err
    assert not (project / "report.html").exists()


@pytest.mark.parametrize(
    "verb", [["report", "small"], ["results", "small", "--csv"], ["plan"]], ids=lambda verb: verb[0]
)
def test_output_goes_into_a_pipe_and_never_takes_its_place(verb: list[str], project: Path) -> None:
    folder = project.parent / f"{project.name}-pipes"
    folder.mkdir()
    os.mkfifo(pipe := folder / "pipe")
    with (folder / "read").open("wb") as into, subprocess.Popen(["cat", str(pipe)], stdout=into) as reader:
        assert run_guarded([*verb, "-o", str(pipe)]) == 0
        if not pipe.is_fifo():
            reader.kill()
    assert pipe.is_fifo() and (folder / "read").stat().st_size
