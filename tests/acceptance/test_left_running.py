"""Processes that still run when a job's command has ended: work is waited for, idle ones cost no time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from monkey.processes import process_tree
from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import PROMPT, Shop

pytestmark = pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")

#: Uses a CPU for as many seconds, and then says so in a file.
WORK = """\
import sys, time
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    pass
open(sys.argv[2], "a").write("done\\n")
"""
#: Each way in which a command leaves something running; {0} is the file for WORK.
WAYS = {
    "output": ["bash", "-c", 'seq 200 > >(while read line; do echo "line $line"; sleep 0.005; done)'],
    "failing": [
        "bash",
        "-c",
        '(seq 200; exit 3) > >(while read line; do echo "line $line"; sleep 0.005; done); exit 3',
    ],
    "works": ["sh", "-c", "python3 work.py 1 {0} > /dev/null 2>&1 &"],
    "session": ["sh", "-c", "setsid sh -c 'python3 work.py 1 {0} > /dev/null 2>&1 &' &"],
}


def run_jobs(shop: Shop, name: str, command: list[str], text: str = "", code: int = 0) -> dict[str, Any]:
    """Run a sweep of one job, and return the job."""
    (shop.root / "work.py").write_text(WORK)
    shop.spec(f"command: {command!r}\nparameters: {{}}\noutputs: []\n{text}", name=name)
    shop.run("apply", f"specs/{name}.yaml", code=code)
    (job,) = shop.json("list", "jobs", name)
    return dict(job)


@pytest.mark.parametrize("way", WAYS)
def test_what_still_works_or_writes_is_waited_for(shop: Shop, tmp_path: Path, way: str) -> None:
    done = tmp_path / "done"
    command = [word.replace("{0}", str(done)) for word in WAYS[way]]
    job = run_jobs(shop, "sweep", command, "grace: 60s\n", code=way == "failing")
    log = shop.run("logs", "sweep").stdout
    if way in ("output", "failing"):
        assert [line for line in log.splitlines() if "line" in line] == [f"line {number}" for number in range(1, 201)]
    else:
        assert whole_lines(done) == ["done"]
    assert "left processes" not in log
    wanted = ("failed", "exit code 3") if way == "failing" else ("succeeded", None)
    assert (job["state"], job["reason"]) == wanted


def test_idle_processes_cost_no_grace_and_are_counted(shop: Shop) -> None:
    began = time.monotonic()
    job = run_jobs(shop, "sweep", ["sh", "-c", "sleep 4321 & setsid sleep 4321 & exit 0"], "grace: 5m\n")
    assert time.monotonic() - began < PROMPT
    assert (job["state"], job["reason"]) == ("succeeded", None)
    assert "monkey: the command left processes running (2), which were ended" in shop.run("logs", "sweep").stdout
    assert not shop.processes("sleep", "4321")


@pytest.mark.parametrize(
    "work", ["python3 work.py 1000 done", "while sleep 0.1; do echo tick; done"], ids=["computes", "writes"]
)
def test_work_that_is_cut_off_is_no_success(shop: Shop, work: str) -> None:
    job = run_jobs(shop, "sweep", ["sh", "-c", f"({work}) & exit 0"], "grace: 1s\n", code=1)
    reason = job["reason"]
    assert job["state"] == "failed" and reason.startswith("the command left processes running (")
    assert "which were ended while they still worked, after 1s (hint: have the command wait for them" in reason
    assert not shop.processes("work.py")
