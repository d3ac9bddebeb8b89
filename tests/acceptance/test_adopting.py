"""Finished results that stand for jobs of today: `equivalences`, `--keep-stale`, and what other sweeps see of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.ledger import JOB
from tests.acceptance.shop import Shop

OLD, NEW = "parameters: {{i: {{range: [0, {jobs}]}}}}\n", "parameters: {{number: {{range: [0, {jobs}]}}}}\n"
RENAMED = "equivalences:\n  - renamed: {i: number}\n"


def write(shop: Shop, text: str = "", *, name: str = "sweep", jobs: int = 3, old: bool = False, at: str = "") -> None:
    """Write a spec over a parameter that was called `i` once; `at`: the file's name, if that is not the sweep's."""
    parameter = "i" if old else "number"
    command = f"command: [python3, job.py, '{shop.ledger.directory}', '0.05', '{{{parameter}}}']\n"
    specs = shop.root / "specs"
    specs.mkdir(exist_ok=True)
    body = (OLD if old else NEW).format(jobs=jobs) + "outputs: [result.txt]\n" + text
    (specs / f"{at or name}.yaml").write_text(f"name: {name}\n{command}{body}")


def planned(shop: Shop, name: str = "sweep") -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in shop.json("plan")["sweeps"] if one["name"] == name)
    return found


def entries(shop: Shop) -> list[Path]:
    return sorted((shop.root / ".monkey/store/projects/shop/adoptions").glob("*"))


def code_of(shop: Shop, sweep: str = "sweep") -> str:
    code: str = shop.json("info", sweep)["recipe"]["code"]
    return code


def test_a_renamed_parameter_runs_nothing_again_under_any_name_of_sweep_and_spec(shop: Shop) -> None:
    write(shop, old=True)
    shop.run("apply")
    before = {row["job"]: row["outputs"] for row in shop.json("list", "jobs", "sweep")}
    write(shop)
    assert planned(shop)["jobs"] == {"new": 3, "stale": 0, "kept": 0, "removed": 3}, "nothing is declared yet"
    write(shop, RENAMED)
    said = shop.run("plan").stdout
    assert "= 3 jobs (3 adopted)" in said
    assert "3 jobs adopted: i was renamed to number (equivalences, specs/sweep.yaml:6)" in said
    shop.run("apply")
    assert shop.ledger.executions == 3
    rows = shop.json("list", "jobs", "sweep")
    assert [row["outputs"] for row in rows] == list(before.values()) and not {
        row["job"] for row in rows
    } & before.keys()
    assert "begun" in shop.run("logs", rows[0]["job"]).stdout
    assert f"adopts      {next(iter(before))}" in shop.run("info", rows[0]["job"]).stdout
    shop.run("fetch", "sweep")
    assert shop.run("plan", "--detailed-exitcode").stdout.startswith("No changes")

    (shop.root / "specs/sweep.yaml").unlink()
    write(shop, name="renamed")  # without the equivalences: what was adopted belongs to the jobs
    assert planned(shop, "renamed")["adoptions"] == [{"why": "this project adopted the same results before", "jobs": 3}]
    shop.run("apply")
    write(shop, name="second", jobs=4)
    assert planned(shop, "second")["jobs"] == {"new": 1, "stale": 0, "kept": 3, "removed": 0}
    shop.run("apply")
    assert shop.ledger.executions == 4 and len(entries(shop)) == 1, "an adoption is recorded once"


def test_a_refactor_of_code_runs_nothing_again_and_the_next_change_does(shop: Shop) -> None:
    write(shop, old=True)
    shop.run("apply")
    first = code_of(shop)
    (shop.root / "job.py").write_text("# tidied\n" + JOB)
    declared = f"equivalences:\n  - code: '{first[:8]}'\n"
    write(shop, RENAMED + f"  - code: '{first[:8]}'\n", name="tidy")
    assert "specs/tidy.yaml:6, 7" in planned(shop, "tidy")["adoptions"][0]["why"]
    write(shop, declared, old=True)
    (shop.root / "specs/tidy.yaml").unlink()
    assert f"code {first[:8]} stands for this one" in shop.run("plan", "--markdown").stdout
    shop.run("apply")
    assert shop.ledger.executions == 3
    second = code_of(shop)
    (shop.root / "job.py").write_text("# changed\n" + JOB)
    found = planned(shop)
    assert found["jobs"]["stale"] == 3 and not found["adoptions"]
    assert any(f'add {{code: "{second[:8]}"}}' in note for note in found["notes"]), found["notes"]
    write(shop, declared + f"  - code: '{second[:8]}'\n", old=True)
    assert planned(shop)["jobs"]["kept"] == 3
    write(shop, declared, old=True)
    shop.run("apply")
    assert shop.ledger.executions == 6


def test_what_was_kept_on_purpose_stays_kept_for_other_sweeps_and_names(shop: Shop) -> None:
    write(shop, old=True)
    shop.run("apply")
    (shop.root / "job.py").write_text("# tidied\n" + JOB)
    shop.run("apply", "--keep-stale", "code")
    write(shop, old=True, name="other", at="sweep")
    assert planned(shop, "other")["adoptions"][0]["jobs"] == 3
    shop.run("plan", "-o", "plan.json")
    shop.run("apply", "plan.json")
    assert shop.ledger.executions == 3
    assert "3 jobs had adopted a result" in shop.run("plan", "--keep-stale", "nothing").stdout
    shop.run("apply", "--keep-stale", "nothing")
    assert shop.ledger.executions == 6
    write(shop, old=True, name="third", at="sweep")
    assert planned(shop, "third")["jobs"]["kept"] == 3 and not planned(shop, "third")["adoptions"]


@pytest.mark.parametrize("data", [b"", b"[]", b'{"kind":"adopt","jobs":"00","results":""}', b'{"kind":"other"}'])
def test_a_record_that_is_none_is_reported_and_stops_nothing(shop: Shop, data: bytes) -> None:
    write(shop, old=True, jobs=1)
    shop.run("apply")
    there = shop.root / ".monkey/store/projects/shop/adoptions"
    there.mkdir()
    (there / "00000001").write_bytes(data)
    write(shop, RENAMED, jobs=1)
    assert "adoptions/00000001: skipped" in shop.run("plan").stdout
    shop.run("apply")
    assert shop.ledger.executions == 1 and json.loads(entries(shop)[1].read_bytes())["kind"] == "adopt"
