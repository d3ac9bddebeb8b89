"""Results in Python: rows with types, tables of other libraries, and the cells of the documentation."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from math import isnan
from pathlib import Path
from typing import Any

import pytest

import monkey
from monkey.errors import MonkeyError, NotFound
from monkey.project_handle import JobResult, SweepResults
from monkey.protocol.entries import ClaimEnd
from tests.unit.apply.small_project import Pen, apply, opened, write_project

SPEC = """\
name: digits
command: python3 train.py --lr {lr} --hidden {hidden}
parameters:
  lr: [0.03, 0.1, 0.3]
  hidden: [32, 64]
metric: {name: val_accuracy, goal: maximize}
"""
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
#: Runs a program as a notebook does: each statement within a running loop, with what it shows. `python -m asyncio`
#: would, but that of 3.14 reads blocks from a pipe line by line.
NOTEBOOK = """
import ast, asyncio, sys

async def run_cells():
    names = {"asyncio": asyncio}
    for statement in ast.parse(sys.stdin.read()).body:
        exec(compile(ast.Interactive([statement]), "cell", "single"), names)

asyncio.run(run_cells())
"""


async def prepare(root: Path) -> None:
    """Run all jobs: the first fails, the second diverges."""
    async with opened(root) as world:
        table = (await apply(world)).wanted[0].desired.table
        pen = Pen(world, "local/gpu1/1")
        for at, (job, parameters) in enumerate(table.rows()):
            await pen.begin(job, sweep="digits", beat=False)
            accuracy = {
                "last": None if at == 1 else parameters["lr"] + parameters["hidden"] / 100,
                "nonfinite": at == 1,
            }
            metrics = {"val_accuracy": accuracy} if at else {}
            failed = {"reason": "exit code 1", "exit_code": 1, "log_tail": ["KeyError"]} if at == 0 else {}
            how = ClaimEnd.FAILED if failed else ClaimEnd.SUCCEEDED
            await pen.end(job, how, sweep="digits", metrics=metrics, usage={"cpus": 1.5}, **failed)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write_project(root, SPEC)
    asyncio.run(prepare(root))
    return root


def read(project: Path, **options: Any) -> SweepResults:
    return monkey.Project(project).sweep("digits").results(**options)


def test_rows_are_jobs_best_first(project: Path) -> None:
    results = read(project)
    best = results[0]
    assert isinstance(best, JobResult) and best == results.best and len(results) == 6 == len(list(results))
    assert best.parameters == {"lr": 0.3, "hidden": 64} and best.metrics == {"val_accuracy": pytest.approx(0.94)}
    assert (best.state, best.host, best.signature, best.counts, best.attempt) == ("succeeded", "gpu1", "", True, 1)
    diverged = next(each for each in results if each.diverged)
    assert isnan(diverged.metrics["val_accuracy"]) and not diverged.counts
    failed = next(each for each in results if each.state == "failed")
    assert len(failed.signature) == 6 and failed.reason == "exit code 1" and failed.metrics == {}
    assert [each.job for each in results[:2]] == [results[0].job, results[1].job] and results[-1].job == list(results)[
        -1
    ].job
    assert repr(results) == "<results of 6 jobs, best val_accuracy 0.94>"


def test_a_condition_chooses_as_on_the_command_line(project: Path) -> None:
    assert {each.parameters["lr"] for each in read(project, where="lr < 0.2 and host == 'gpu1'")} == {0.03, 0.1}
    with pytest.raises(MonkeyError, match="unknown parameter 'lrr'"):
        read(project, where="lrr == 1")
    assert len(read(project, where="facts.cpu == 'x'", best=True)) == 0


def test_it_works_where_an_event_loop_runs(project: Path) -> None:
    async def cell() -> int:
        return len(read(project))

    assert asyncio.run(cell()) == 6


def test_what_is_not_there_is_named(project: Path, tmp_path: Path) -> None:
    assert monkey.Project(project).sweeps() == ["digits"]
    with pytest.raises(NotFound, match="digit"):
        monkey.Project(project).sweep("digit").results()
    (tmp_path / "monkey.yaml").write_text("project: p\n")
    with pytest.raises(MonkeyError, match="nothing was applied yet"):
        monkey.Project(tmp_path).sweeps()
    assert not (tmp_path / ".monkey").exists(), "reading makes nothing"


@pytest.mark.needs("pyarrow")
def test_arrow_has_the_rows(project: Path) -> None:
    results = read(project)
    table = results[:3].to_arrow()
    assert table["job"].to_pylist() == [each.job for each in results[:3]]
    assert str(table.schema.field("lr").type) == "double" and str(table.schema.field("hidden").type) == "int64"


@pytest.mark.needs("pyarrow")
@pytest.mark.needs("pandas")
def test_pandas_has_the_rows(project: Path) -> None:
    frame = read(project).to_pandas()
    assert list(frame["lr"][:2]) == [0.3, 0.1] and frame["hidden"].dtype == "int64" and len(frame) == 6


def test_without_the_libraries_they_are_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = read(project)
    for name, ask in (("pandas", results.to_pandas), ("pyarrow", results.to_arrow)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MonkeyError, match=name):
            ask()


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_reading_loads_neither_library(project: Path) -> None:
    read_it = f"import sys, monkey; monkey.Project({str(project)!r}).sweep('digits').results()"
    assert run_python(f"{read_it}; print({{'pyarrow', 'pandas', 'numpy'}} & set(sys.modules))") == "set()\n"


def test_importing_monkey_reads_no_project() -> None:
    loaded = "sorted(name for name in sys.modules if name.startswith('monkey.'))"
    said = run_python(f"import sys, monkey, monkey.results; print({loaded}, monkey.results.__name__)")
    assert said == "['monkey.results'] monkey.results\n", "the package keeps its name, and nothing else is loaded"


def cells() -> list[str]:
    """Return the Python blocks of the section on notebooks."""
    section = PAGE.read_text().partition("\n## In Python\n")[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)


@pytest.mark.needs("pyarrow")
@pytest.mark.needs("pandas")
def test_the_cells_of_the_documentation_run_one_after_the_other(project: Path) -> None:
    """As a notebook runs them: within a running loop, in one namespace, each with what it shows."""
    assert len(cells()) >= 2
    typed = "".join(f"{cell}\n" for cell in cells()) + "'loop runs:', asyncio.get_running_loop().is_running()\n"
    notebook = [sys.executable, "-c", NOTEBOOK]
    done = subprocess.run(notebook, input=typed, capture_output=True, text=True, cwd=project, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "('loop runs:', True)" in done.stdout
    assert "{'lr': 0.3, 'hidden': 64} 0.94 succeeded" in done.stdout, done.stdout
    assert re.search(r"0\.30 +0\.78\d* +0\.2\d* +2", done.stdout), done.stdout
