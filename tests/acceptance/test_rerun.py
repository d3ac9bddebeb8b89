"""`monkey rerun --check`: finished jobs run once more, beside their record; what differs is named, and its cause."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

#: The third job takes its seed from the clock. Until its third step, nothing comes of that.
TRAIN = """\
import os, random, sys, time, monkey
seed = random.Random(time.time() if sys.argv[1] == "2" else os.environ["MONKEY_JOB"] + os.environ["MONKEY_SWEEP"])
for step in range(5):
    monkey.log({"loss": seed.random() if step > 2 else 1.0}, step=step)
open("result.txt", "w").write(str(seed.random()))
"""
#: A result that comes from a package's version.
VERSION = "import numb; open('result.txt', 'w').write(numb.version)"


def read_records(store: Path) -> dict[str, bytes]:
    """Return all that the store has of jobs."""
    jobs = store / "projects/shop/jobs"
    return {str(path.relative_to(jobs)): path.read_bytes() for path in jobs.rglob("*") if path.is_file()}


def verdicts(found: list[dict[str, Any]]) -> list[str]:
    return [job["verdict"] for one in found for job in one["jobs"]]


def write_wheel(directory: Path, version: str) -> None:
    """Write a package `numb` that says its version."""
    about = f"numb-{version}.dist-info"
    with zipfile.ZipFile(directory / f"numb-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr("numb.py", f"version = '{version}'\n")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: numb\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", f"numb.py,,\n{about}/METADATA,,\n")


def test_a_seed_from_the_clock_is_caught_and_the_record_stands(shop: Shop, store: Path) -> None:
    (shop.root / "train.py").write_text(TRAIN)
    shop.spec("command: [python3, train.py, '{i}']\nmetric: {name: loss}\n", jobs=3)
    shop.run("apply")
    before, plan = read_records(store), shop.run("plan", "--detailed-exitcode").stdout
    said = shop.run("rerun", "sweep", "--check", code=1).stdout
    assert "check-1.sweep: 2 of 3 identical, 1 of 3 differs." in said
    assert "no recorded fact differs: look for a seed from the clock" in said
    after = read_records(store)
    assert {name: after[name] for name in before} == before and len({name[:16] for name in after}) == 6
    assert shop.run("plan", "--detailed-exitcode").stdout == plan, "no spec is gone, and nothing is to be run"
    assert shop.run("rerun", "--show", "check-1.sweep", code=1).stdout in said
    (found,) = shop.json("rerun", "--show", "check-1.sweep", code=1)
    (wrong,) = [job for job in found["jobs"] if job["verdict"] == "differs"]
    row = next(row for row in shop.json("results", "sweep") if row["parameters"]["i"] == 2)
    loss = wrong["metrics"][0]
    assert (wrong["job"], loss["step"], loss["recorded"]) == (row["job"], 3, row["metrics"]["loss"])
    assert wrong["facts"] == [] and wrong["outputs"][0]["path"] == "result.txt"
    assert shop.json("rerun", "--show", "check-1.sweep", "--ignore", "loss", "--ignore", "*.txt")[0]["ok"]
    assert shop.run("verify", "check-1.sweep").stdout.startswith("check-1.sweep: all as recorded")
    # A check of a check is none, nor is a job that never ran.
    assert "is a check" in shop.run("rerun", "--check", wrong["check"], code=1).stderr
    empty = shop.run("rerun", "--check", "--sample", "0.000001%").stdout
    assert "has none of 3 finished jobs" in empty


def test_another_version_of_a_package_is_named_and_the_recorded_one_is_first_choice(shop: Shop, tmp_path: Path) -> None:
    write_wheel(tmp_path, "1.0")
    (shop.root / "requirements.txt").write_text(f"--no-index\n--find-links {tmp_path}\nnumb\n")
    spec = f'command: [python, -c, "{VERSION}"]\nparameters: {{}}\nenvironment: {{requirements: requirements.txt}}\n'
    shop.spec(spec)
    shop.run("apply")
    write_wheel(tmp_path, "2.0")
    assert verdicts(shop.json("rerun", "sweep", "--check")) == ["identical"]
    found = shop.json("rerun", "sweep", "--check", "--fresh", code=1)
    assert verdicts(found) == ["differs"]
    assert found[0]["jobs"][0]["facts"] == [{"name": "numb", "recorded": "1.0", "now": "2.0"}]
    assert "came from: numb 1.0 → 2.0" in shop.run("rerun", "--show", "check-2.sweep", code=1).stdout


def test_a_killed_agent_in_the_middle_of_a_check_costs_no_check(shop: Shop, store: Path) -> None:
    shop.spec("outputs: []\n", jobs=3, seconds=0)
    shop.run("apply")
    before = read_records(store)
    shop.ledger.hold()
    check = shop.start("rerun", "sweep", "--check", "--json")
    until(lambda: shop.ledger.executions > 3, "the check runs")
    shop.kill(shop.processes("monkey_agent"))
    killed = shop.ledger.executions
    until(lambda: shop.ledger.executions > killed, "the next agent takes it over")
    shop.ledger.release()
    out, err = check.communicate(timeout=120)
    assert (check.returncode, verdicts(json.loads(out))) == (0, ["identical"] * 3), err
    assert not shop.ledger.overlaps and len(shop.ledger.begins) == 3, "checks are told the ids of what they check"
    after = read_records(store)
    assert {name: after[name] for name in before} == before


def test_checks_wait_for_real_jobs_and_end_as_other_sweeps_do(shop: Shop) -> None:
    shop.spec("outputs: []\n", jobs=2, seconds=0)
    shop.run("apply")
    shop.ledger.hold()
    assert "`monkey rerun --show check-1.sweep`" in shop.run("rerun", "sweep", "--check", "--detach").stdout
    assert verdicts(shop.json("rerun", "--show", "check-1.sweep", code=1)) == ["unfinished"] * 2
    assert "cancelled (2 jobs" in shop.run("cancel", "check-1.sweep").stdout
    until(lambda: not shop.jobs, "the checks were stopped")
    shop.ledger.release()
    assert "2 of 2 unfinished" in shop.run("rerun", "--show", "check-1.sweep", code=1).stdout
    assert shop.states() == {"succeeded": 2}
