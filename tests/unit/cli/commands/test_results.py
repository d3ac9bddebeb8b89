"""`monkey results` as people type it: files by their names, and conditions on what each job's end recorded."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey.cli.main import run_guarded
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.record.facts import encode_facts, hash_facts
from monkey.store.create import create_object
from tests.unit.apply.small_project import SPEC, Pen, apply, opened, write_project

MACHINES = {"gpu1": {"cpu": "EPYC", "driver": "570.1"}, "gpu2": {"cpu": "Xeon", "driver": "580.2"}}


async def prepare(root: Path) -> None:
    """Run the jobs lr=1 and lr=3 on gpu1, lr=2 on gpu2, where it fails."""
    async with opened(root) as world:
        table = (await apply(world)).wanted[0].desired.table
        pens = {name: Pen(world, f"local/{name}/1") for name in MACHINES}
        for at, job in enumerate(table.ids):
            host = f"gpu{at % 2 + 1}"
            data = encode_facts(MACHINES[host])
            await create_object(world.at, world.keys.facts(hash_facts(data)), data)
            await pens[host].begin(job)
            about = {"metrics": {"loss": {"last": float(at), "min": 0.0, "max": 9.0}}, "facts": hash_facts(data)}
            failed = {"reason": "exit code 1", "exit_code": 1, "log_tail": ["KeyError: 'x'"]} if at == 1 else {}
            await pens[host].end(job, ClaimEnd.FAILED if failed else ClaimEnd.SUCCEEDED, **about, **failed)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write_project(root, SPEC.replace("[1, 2, 3]", "[1, 2, 3]\n  epochs: 5"))
    asyncio.run(prepare(root))
    return root


@pytest.fixture(autouse=True)
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(project)
    return iter([None])


def rows(capfd: pytest.CaptureFixture[str], *options: str) -> list[dict[str, object]]:
    assert run_guarded(["results", "small", "--json", *options]) == 0
    found: list[dict[str, object]] = json.loads(capfd.readouterr().out)
    return found


def lrs(capfd: pytest.CaptureFixture[str], where: str) -> list[object]:
    return [row["parameters"]["lr"] for row in rows(capfd, "--where", where)]


def test_where_names_the_machine_facts_and_signature(capfd: pytest.CaptureFixture[str]) -> None:
    assert lrs(capfd, "host == 'gpu1'") == [1, 3]
    assert lrs(capfd, "facts.cpu == 'Xeon'") == [2]
    assert lrs(capfd, "facts.driver < '575' and loss < 1") == [1]
    [signature] = {row["signature"] for row in rows(capfd) if row["state"] == "failed"}
    assert lrs(capfd, f"signature == {signature}") == [2]
    assert {row["host"] for row in rows(capfd)} == {"gpu1", "gpu2"}


def test_info_and_the_table_show_machine_and_signature(capfd: pytest.CaptureFixture[str]) -> None:
    [failed] = [row for row in rows(capfd) if row["state"] == "failed"]
    assert run_guarded(["info", str(failed["job"])]) == 0
    told = capfd.readouterr().out
    assert f"signature   {failed['signature']}" in told and "host        gpu2" in told
    assert run_guarded(["results", "small", "--all"]) == 0
    told = capfd.readouterr().out
    assert str(failed["signature"]) in told and "gpu2" in told
    assert run_guarded(["info", "small"]) == 0
    assert f"{failed['signature']}  1 job: exit code 1: KeyError" in capfd.readouterr().out


def test_only_what_changed_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert [list(row["parameters"]) for row in rows(capfd, "--only-changed")] == [["lr"]] * 3
    assert run_guarded(["results", "small", "--only-changed", "--csv"]) == 0
    assert "epochs" not in capfd.readouterr().out
    assert run_guarded(["results", "small", "--only-changed", "--all"]) == 0
    assert "epochs" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("name", "begin"),
    [("r.csv", b"job,state,lr"), ("r.json", b"[\n {"), ("r.md", b"### monkey"), ("r.tex", b"% \\usep")],
)
def test_a_files_name_says_its_format(
    name: str, begin: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_guarded(["results", "small", "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(begin) and capfd.readouterr().out == ""
    assert run_guarded(["results", "small", "--csv", "-o", str(tmp_path / "any")]) == 0
    assert (tmp_path / "any").read_bytes().startswith(b"job,state,lr")


def test_groups_are_written_as_latex(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["results", "small", "--group-by", "epochs", "--latex"]) == 0
    assert "5 & \\textbf{" in capfd.readouterr().out


@pytest.mark.needs("pyarrow")
def test_parquet_is_written_and_read_back(tmp_path: Path) -> None:
    import pyarrow.parquet

    for options in (["-o", "r.parquet"], ["--parquet", "-o", "other"]):
        path = tmp_path / options[-1]
        assert run_guarded(["results", "small", *options[:-1], str(path)]) == 0
        table = pyarrow.parquet.read_table(path)
        assert table["lr"].to_pylist() == [1, 3, 2] and table["loss"].to_pylist() == [0.0, 2.0, 1.0]
        assert table["host"].to_pylist() == ["gpu1", "gpu1", "gpu2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--parquet"], "--parquet writes a file"),
        (["-o", "x.doc"], "expected a name that ends in .parquet, .csv"),
        (["--csv", "--latex"], "--csv and --latex exclude each other"),
        (["--group-by", "lr", "-o", "x.parquet"], "--group-by and --parquet exclude each other"),
        (["-o", "/proc/none/x.csv"], "cannot be written"),
    ],
)
def test_what_does_not_fit_is_refused(options: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["results", "small", *options]) != 0
    assert said in capfd.readouterr().err


def test_importance_is_of_thirty_jobs_at_least(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(["results", "small", "--importance"]) == 1
    assert "expected at least 30 jobs" in capfd.readouterr().err
    assert run_guarded(["results", "small", "--importance", "--csv"]) != 0
    assert "--importance and --csv exclude each other" in capfd.readouterr().err


def test_a_large_table_reads_no_curves_unasked_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_project(
        tmp_path,
        "name: many\ncommand: python3 train.py {i}\nparameters: {i: {range: [0, 501]}}\n"
        "metric: {name: loss, take: best}\n",
    )
    about = {"last": 0.5, "min": 0.1, "max": 9.0, "step": 9, "best_min_step": 4, "best_max_step": 0}
    moment = {**about, "step": 4, "last": 0.75}

    async def end_one() -> None:
        async with opened(tmp_path) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[7]
            pen = Pen(world)
            await pen.begin(job)
            await pen.end(job, metrics={"loss": about, "acc": about, "same": moment})

    asyncio.run(end_one())
    monkeypatch.chdir(tmp_path)
    for options, heads, note in (
        ([], ["loss", "acc (last)", "same (last)"], "note: (last) is not at the step of the best value"),
        (["--top", "3"], ["loss", "acc", "same"], ""),
        (["--at-best"], ["loss", "acc", "same"], "reading the curves of 501 jobs"),
    ):
        assert run_guarded(["results", "many", *options]) == 0
        shown, said = capfd.readouterr()
        assert re.split(r"  +", shown.splitlines()[0].strip())[1:4] == heads
        assert note in said and bool(note) is bool(said)
    # No record is in the store: the last value of acc is marked. That of `same` is of the step.
    assert "0.5 (last)  0.75  " in shown
