"""A job's record over its attempts: what each view says of it is what the job's own ledger says.

MONKEY_SEED=N has one history in particular; without it, each run has another.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import Shop, until

STEPS = 40


class LoggedJobs:
    """A sweep of jobs that note in a ledger what they log."""

    def __init__(self, shop: Shop, jobs: int, pause: float, mood: float = 0.0) -> None:
        self.shop, self.ledger = shop, shop.root.parent / "logged"
        shutil.copy(Path(__file__).with_name("logger.py"), shop.root / "logger.py")
        shop.spec(
            f"command: [python3, logger.py, '{self.ledger}', '{STEPS}', '{pause}', '{mood}']\n"
            f"parameters: {{i: {{range: [0, {jobs}]}}}}\noutputs: []\n"
            "metric: {name: loss, goal: minimize}\ncheckpoint_every: 1s\n"
        )

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in whole_lines(self.ledger)] if self.ledger.exists() else []

    def step(self) -> int:
        """Return the highest step that any job logged."""
        return max((line["step"] for line in self.lines if line["what"] == "log"), default=0)

    def kept(self, job: str) -> dict[str, dict[int, float]]:
        """Return the history of a job by its ledger, metric to its values by steps.

        It is what each execution continued, truncated at its own first step.
        """
        histories: dict[str | None, list[dict[str, Any]]] = {}
        fresh: set[str] = set()
        for line in self.lines:
            if line["job"] != job:
                continue
            by = line["by"]
            if line["what"] == "begin":
                # A checkpoint stands for all that the execution which saved it has logged.
                histories[by] = list(histories.get(line["saved_by"], ()))
                fresh.add(by)
            elif line["what"] == "log":
                if by in fresh:
                    histories[by] = [each for each in histories[by] if each["step"] < line["step"]]
                    fresh.discard(by)
                histories[by].append(line)
        *_, last = histories.values()
        return {name: {each["step"]: each[name] for each in last if name in each} for name in ("loss", "val")}

    def curves(self, job: str) -> dict[str, dict[int, float]]:
        """Return the same as `monkey metrics` has it."""
        [row] = self.shop.json("metrics", job)
        assert row["job"] == job
        found = row["metrics"].items()
        return {name: dict(zip(curve["steps"], curve["values"], strict=True)) for name, curve in found}

    def check(self) -> None:
        """Hold every view against the ledger."""
        rows = self.shop.json("results", "sweep")
        table = {row["job"]: row for row in csv.DictReader(self.shop.run("results", "--csv").stdout.splitlines())}
        for row in rows:
            kept, job = self.kept(row["job"]), row["job"]
            info = self.shop.json("info", job)
            assert self.curves(job) == {name: points for name, points in kept.items() if points}
            for name, points in kept.items():
                values = list(points.values())
                expected = (values[-1], min(values), max(values), len(values)) if values else None
                for told in (row["summary"], info["metrics"]):
                    entry = told.get(name)
                    found = (entry["last"], entry["min"], entry["max"], entry["count"]) if entry else None
                    assert found == expected, (job, name)
                if values:
                    assert float(table[job][name]) == values[-1]
            assert row["seconds"] == info["seconds"]


@pytest.mark.parametrize("how", ["paused", "killed"])
def test_a_resumed_job_has_the_metrics_and_outputs_of_all_its_attempts(shop: Shop, how: str) -> None:
    jobs = LoggedJobs(shop, 1, 0.15)
    shop.run("apply", "--detach")
    until(lambda: jobs.step() >= 22, "the job has logged")
    if how == "paused":
        shop.run("pause", "sweep")
        until(lambda: shop.states() == {"paused": 1}, "it is paused")
        shop.run("resume", "sweep")
    else:
        [row] = shop.json("list", "jobs", "sweep")
        logged = {line["step"]: line["loss"] for line in jobs.lines if line.get("loss")}
        shown = until(lambda: jobs.curves(row["job"])["loss"], "the curve of the running job is in the store")
        # The agent ships what was logged up to its last heartbeat.
        assert shown.items() <= {line["step"]: line["loss"] for line in jobs.lines if line.get("loss")}.items()
        assert len(shown) > len(logged) / 2
        for pid in shop.agents:
            os.kill(pid, signal.SIGKILL)
    shop.run("apply")
    begins = [line["step"] for line in jobs.lines if line["what"] == "begin"]
    assert len(begins) == 2 and begins[1] >= 5, "it did not continue from a checkpoint"
    jobs.check()
    (row,) = shop.json("results", "sweep")
    assert row["attempt"] == 2, "a position in the log is no number of an attempt"
    assert "all as recorded" in shop.run("verify", "sweep").stdout
    (job,) = shop.json("list", "jobs", "sweep")
    ran = [attempt["seconds"] for attempt in shop.json("info", job["job"])["attempts"] if attempt["seconds"]]
    assert len(ran) == 2 and job["seconds"] == pytest.approx(sum(ran), abs=0.01)
    if how == "paused":
        shop.run("fetch", job["job"], "-o", "brought")
        brought = {int(path.stem): path.read_text() for path in (shop.root / "brought").glob("*.txt")}
        assert brought.keys() == set(range(1, STEPS + 1))
        assert brought[1] == "1" and brought[STEPS] == "2"


#: Fails at its first attempt, and then has no checkpoint: it never wrote a file there, or removed it.
STARTS_OVER = """\
import os, pathlib, sys
import monkey

place, first = monkey.checkpoint_dir(), os.environ["MONKEY_ATTEMPT"] == "1"
assert not [path for path in place.rglob("*") if path.is_file()]
(place / "weights").mkdir(exist_ok=True)
for value in (0.9, 0.2, 0.01) if first else (0.9, 0.7):
    monkey.log("loss", value)
    monkey.log("acc", 1 - value, step=round(value * 100))
if first and sys.argv[1] == "removed":
    (place / "last.pt").write_text("x")
    (place / "last.pt").unlink()
sys.exit(first)
"""


@pytest.mark.parametrize("how", ["empty", "removed"])
def test_a_checkpoint_without_a_file_is_none(shop: Shop, how: str) -> None:
    (shop.root / "over.py").write_text(STARTS_OVER)
    shop.spec(
        f"command: [python3, over.py, {how}]\nparameters: {{}}\noutputs: []\n"
        "metric: {name: loss, goal: minimize}\nmax_retries: 1\ncheckpoint_every: 1s\n"
    )
    shop.run("apply")
    (row,) = shop.json("results", "sweep")
    found = {name: (entry["last"], entry["min"], entry["count"]) for name, entry in row["summary"].items()}
    assert found == {"loss": (0.7, 0.7, 2), "acc": (pytest.approx(0.3), pytest.approx(0.1), 2)}
    assert "goes on from" not in shop.run("logs", row["job"]).stdout


#: Its second attempt begins again at the first step, and leaves the checkpoint as it was.
IGNORES_ONCE = """\
import os, sys
import monkey

attempt, kept = int(os.environ["MONKEY_ATTEMPT"]), monkey.checkpoint_dir() / "steps"
begun = int(kept.read_text()) if kept.exists() and attempt != 2 else 0
for step in range(begun + 1, begun + 4):
    monkey.log("loss", float(attempt), step=step)
if attempt != 2:
    kept.write_text(str(step))
sys.exit(attempt < 3)
"""


def test_what_an_attempt_logged_that_left_its_checkpoint_untouched_is_not_continued(shop: Shop) -> None:
    (shop.root / "ignores.py").write_text(IGNORES_ONCE)
    shop.spec("command: [python3, ignores.py]\nparameters: {}\noutputs: []\nmax_retries: 2\n")
    shop.run("apply")
    (job,) = shop.json("list", "jobs", "sweep")
    (row,) = shop.json("metrics", job["job"])
    curve = row["metrics"]["loss"]
    assert dict(zip(curve["steps"], curve["values"], strict=True)) == {1: 1, 2: 1, 3: 1, 4: 3, 5: 3, 6: 3}
    assert "all as recorded" in shop.run("verify", "sweep").stdout


@pytest.mark.slow
def test_any_history_is_recorded_as_the_jobs_lived_it(shop: Shop) -> None:
    """Pause, kill the agent, kill all processes, or lose the machine with its disk, at random moments."""
    seed = int(os.environ.get("MONKEY_SEED") or random.randrange(1_000_000))
    print(f"MONKEY_SEED={seed}")
    dice = random.Random(seed)
    jobs = LoggedJobs(shop, 6, 0.08, mood=0.2)

    def pause() -> None:
        shop.run("pause", "sweep")
        if dice.random() < 0.5:
            until(lambda: "running" not in shop.states(), "it is paused")
        shop.run("resume", "sweep")

    def kill_agents() -> None:
        shop.kill(shop.agents)

    def lose_machine() -> None:
        shop.kill_all()
        shutil.rmtree(shop.state)

    def grown(lines: int) -> bool:
        return len(jobs.lines) >= lines or shop.states().keys() == {"succeeded"}

    shop.run("apply", "--detach")
    # A machine is lost once: its jobs are taken over after 90 s, when its leases have ended.
    events = [lose_machine, *dice.choices([pause, kill_agents, shop.kill_all], k=5)]
    for event in dice.sample(events, len(events)):
        until(partial(grown, len(jobs.lines) + dice.randint(1, 60)), "they log")
        event()
        shop.run("apply", "--detach")
    shop.run("apply")
    assert shop.states() == {"succeeded": 6}
    assert sum(line["what"] == "begin" for line in jobs.lines) > 6, "none was interrupted"
    jobs.check()
    assert "all as recorded" in shop.run("verify", "sweep").stdout


def test_an_attempt_whose_supervisor_was_killed_counts_its_time(shop: Shop) -> None:
    jobs = LoggedJobs(shop, 1, 0.15)
    shop.run("apply", "--detach")
    until(lambda: jobs.step() >= 14, "the job has logged")
    agents = shop.agents
    shop.kill(shop.processes("supervisor.py"))
    shop.run("apply")
    assert shop.agents == agents, "another agent did it"
    jobs.check()
    (row,) = shop.json("results", "sweep")
    ran = [attempt["seconds"] for attempt in shop.json("info", row["job"])["attempts"]]
    assert row["attempt"] == shop.json("list", "jobs", "sweep")[0]["attempt"] == 2
    assert len(ran) == 2 and ran[0] > 10 * 0.15 and row["seconds"] == pytest.approx(sum(ran), abs=0.01)
