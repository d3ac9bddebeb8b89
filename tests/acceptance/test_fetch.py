"""`monkey fetch`: what jobs made comes back, as they made it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop


@pytest.mark.slow
def test_outputs_come_back_and_only_once(shop: Shop) -> None:
    shop.spec(jobs=6)
    shop.run("apply")
    rows = {row["job"]: row["parameters"]["i"] for row in shop.json("results", "sweep")}
    assert "Fetched 6 files" in shop.run("fetch", "sweep", "-o", "here").stdout
    here = shop.root / "here"
    for job, digests in shop.ledger.digests.items():
        assert hashlib.sha256((here / job / "result.txt").read_bytes()).hexdigest() in digests
    index = json.loads((here / "results.json").read_text())
    assert {row["job"]: row["parameters"]["i"] for row in index} == rows
    assert (here / "results.csv").read_bytes().count(b"\r\n") == 7
    victim = sorted(rows)[0]
    (here / victim / "result.txt").write_text("altered")
    assert "did not write it: --force" in shop.run("fetch", "sweep", "-o", "here", code=1).stderr
    again = shop.json("fetch", "sweep", "-o", "here", "--force")
    assert (again["fetched"], again["kept"]) == (1, 5)
    assert set(again["jobs"]) == set(rows)
    assert "No changes" in shop.run("plan").stdout, "what was fetched became code"


@pytest.mark.slow
def test_some_jobs_some_files_and_one_job_by_the_beginning_of_its_id(shop: Shop) -> None:
    shop.spec(
        "command: [sh, -c, 'echo $1 > result.txt; mkdir plots; echo $1 > plots/a.svg; exit $(($1 / 3))', sh, '{i}']\n"
        "outputs: [result.txt, plots/]\n",
        jobs=4,
    )
    shop.run("apply", code=1)
    rows = {row["parameters"]["i"]: row["job"] for row in shop.json("results", "sweep")}
    assert sorted(shop.json("fetch", "sweep")["jobs"]) == sorted(rows[i] for i in range(3)), "what failed is left out"
    chosen = shop.json("fetch", "sweep", "-o", "some", "--where", "i >= 2", "--only", "plots/")
    assert {tuple(files) for files in chosen["jobs"].values()} == {
        (f"{rows[2]}/plots/a.svg",),
        (f"{rows[3]}/plots/a.svg",),
    }
    assert not list((shop.root / "some").rglob("result.txt"))
    shop.run("fetch", rows[1][:6])
    assert (shop.root / rows[1] / "plots" / "a.svg").read_text() == "1\n"
    assert "none of the files fits" in shop.run("fetch", rows[1][:6], "--only", "*.npz", code=1).stderr
    assert "there is no sweep or job" in shop.run("fetch", "nothing", code=1).stderr


def test_a_file_that_was_altered_in_the_store_is_refused_and_the_others_come(shop: Shop) -> None:
    shop.spec(jobs=3)
    shop.run("apply")
    kept: list[Path] = sorted(shop.root.glob(".monkey/store/projects/shop/jobs/*/out/*/outputs/result.txt"))
    kept[0].write_text("altered")
    done = shop.run("fetch", "sweep", code=1)
    assert "1 file could not be fetched" in done.stderr and "not those recorded" in done.stderr
    assert len(list((shop.root / "sweep").rglob("result.txt"))) == 2
    for place in ("/proc", "/proc/x", "/dev/null/x"):
        said = shop.run("fetch", "sweep", "-o", place, code=1).stderr
        assert f"expected a directory to write to, found {place}: " in said and "in which you may write: -o DIR" in said


def test_outputs_replace_no_file_of_the_project_and_none_of_gits(shop: Shop) -> None:
    shop.spec(
        "command: [sh, -c, 'mkdir -p .git; echo evil > train.py; echo evil > .git/config; echo 1 > new']\n"
        "outputs: [train.py, .git/config, new]\ncode: {include: [keep.py]}\n",
        jobs=1,
    )
    (shop.root / "keep.py").touch()
    shop.run("apply")
    (shop.root / "train.py").touch()
    (shop.root / ".git").mkdir()
    (shop.root / ".git/config").touch()
    [job] = [row["job"] for row in shop.json("results", "sweep")]
    said = shop.run("fetch", job, "-o", ".", code=1).stderr
    assert "train.py: another file is there" in said and ".git/config: nothing is ever written into .git" in said
    assert (shop.root / "train.py").read_text() == (shop.root / ".git/config").read_text() == ""
    assert (shop.root / "new").read_text() == "1\n"
    shop.run("fetch", job, "-o", ".", "--force", code=1)
    assert (shop.root / "train.py").read_text() == "evil\n" and (shop.root / ".git/config").read_text() == ""
