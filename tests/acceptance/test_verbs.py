"""Every verb, as a user meets it: real processes, real jobs."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.acceptance.shop import PATIENCE, PROMPT, Shop, until

SLOTS = os.cpu_count() or 1


def test_second_apply_does_nothing_and_says_so_quickly(shop: Shop) -> None:
    shop.spec(jobs=4)
    first = shop.run("apply")
    assert "Plan: 4 new" in first.stdout and "all 4 jobs succeeded" in first.stdout
    began = time.monotonic()
    second = shop.run("apply")
    assert time.monotonic() - began < PROMPT
    assert second.stdout == "sweep: all 4 jobs succeeded; nothing to do.\n"
    assert shop.run("plan", "--detailed-exitcode").stdout.startswith("No changes")
    assert shop.ledger.executions == 4


def test_added_value_runs_only_the_new_jobs(shop: Shop) -> None:
    shop.spec(jobs=3)
    shop.run("apply")
    shop.spec(jobs=5)
    plan = shop.json("plan")
    assert plan["sweeps"][0]["jobs"] == {"new": 2, "stale": 0, "kept": 3, "removed": 0}
    shop.run("plan", "--detailed-exitcode", code=2)
    shop.run("apply")
    assert shop.ledger.executions == 5


def test_failures_are_counted_grouped_and_quoted(shop: Shop) -> None:
    shop.spec("""\
command: ["sh", "-c", 'echo about to fail; echo "why: $1" >&2; test $1 = 0 || exit $1', sh, "{code}"]
parameters: {code: [0, 3, 4], i: [1, 2]}
""")
    done = shop.run("apply", code=1)
    assert "2 succeeded, 4 failed" in done.stdout
    assert done.stdout.count("2 jobs failed: exit code") == 2
    assert re.findall(r"│ why: [34]", done.stdout) == ["│ why: 3", "│ why: 4"], "one log's end for each kind"
    again = shop.run("apply", code=1)
    assert "4 failed" in again.stdout
    rows = shop.json("results", "sweep")
    assert sorted(row["reason"] or "" for row in rows)[-1] == "exit code 4"


def test_retry_runs_failed_jobs_again(shop: Shop) -> None:
    switch = shop.root.parent / "works"
    shop.spec(f"command: ['sh', '-c', 'echo x >> {switch}.tries; test -e {switch}']\nparameters: {{}}\noutputs: []\n")
    shop.run("apply", code=1)
    switch.touch()
    assert "nothing" not in shop.run("retry", "sweep").stdout
    shop.run("apply")
    assert shop.states() == {"succeeded": 1}


def test_pause_resume_cancel(shop: Shop) -> None:
    shop.spec(jobs=6)
    shop.ledger.hold()
    shop.run("apply", "--detach")
    until(lambda: shop.ledger.executions, "work begins")
    shop.run("pause", "sweep")
    until(lambda: not shop.jobs, "what runs is stopped")
    until(lambda: shop.states() == {"paused": 6}, "it is written down")
    seen = shop.ledger.executions
    assert "is paused" in shop.run("apply", code=1).stdout
    assert shop.ledger.executions == seen
    shop.run("resume", "sweep")
    until(lambda: shop.ledger.executions > seen, "work goes on")
    shop.run("cancel", "sweep", "-m", "enough of it")
    until(lambda: not shop.jobs, "what runs is stopped")
    until(lambda: shop.states() == {"cancelled": 6}, "it is written down")
    assert "enough of it" in shop.run("status").stdout
    assert not shop.ledger.overlaps


def test_run_is_a_job_like_any_other_and_exits_as_its_command(shop: Shop) -> None:
    done = shop.run(
        "run", "--", "sh", "-c", 'echo "{braces} ${HOME:+x} $1"; echo err >&2; exit 7', "sh", "a b'c", code=7
    )
    assert done.stdout == "{braces} x a b'c\nerr\n"
    assert shop.run("run", "--", "cat", "job.py").stdout == (shop.root / "job.py").read_text()
    assert len(shop.json("list", "sweeps")) == 2
    assert {frozenset(job["parameters"]) for job in shop.json("list", "jobs")} == {frozenset()}
    missing = shop.run("run", "--", "no-such-command", code=None)
    assert missing.returncode in (125, 126, 127)
    assert "no-such-command" in missing.stdout + missing.stderr


@pytest.mark.slow
def test_run_says_why_it_ended_and_never_takes_a_sweep_s_name(shop: Shop) -> None:
    late = shop.run("run", "--timeout", "1s", "--", "sleep", "30", code=143)
    assert late.stderr == "error: timed out after 1s\n"
    assert shop.run("run", "--", "false", code=1).stderr == "", "the command may speak for itself"
    shop.spec(jobs=1)
    shop.run("apply")
    refused = shop.run("run", "--name", "sweep", "--", "true", code=125)
    assert "found 'sweep', which is one already" in refused.stderr
    assert shop.run("apply").stdout.endswith("nothing to do.\n")


@pytest.mark.slow
def test_environment_that_does_not_build_is_a_line_where_there_is_room_for_one(shop: Shop) -> None:
    shop.spec("environment: {requirements: needs.txt}\n", jobs=1)
    (shop.root / "needs.txt").write_text("missing @ file:///nowhere/missing-1-py3-none-any.whl\n")
    done = shop.run("apply", code=1)
    assert "job failed: could not install the requirements" in done.stdout and "missing-1" in done.stdout
    (job,) = shop.json("list", "jobs")
    assert "\n" not in job["reason"] and len(job["reason"]) < 250
    log = shop.run("logs", job["job"]).stdout
    assert "missing-1" in log and "install" in log, "all that the build wrote is in the log of the job that waited"


@pytest.mark.slow
def test_steering_what_is_over_does_nothing_and_says_so_in_one_way(shop: Shop) -> None:
    shop.spec("command: ['sh', '-c', 'exit $0', '{i}']\noutputs: []\n", jobs=2, name="half")
    shop.spec(jobs=1)
    shop.run("apply", code=1)
    for verb in ("pause", "resume", "cancel", "retry"):
        said = shop.run(verb, "sweep").stdout
        assert said == f"sweep: its job succeeded; nothing to {verb}. `monkey results sweep` shows them.\n"
        if verb != "retry":
            said = shop.run(verb, "half").stdout
            assert said == f"half: 1 succeeded, 1 failed; nothing to {verb}. `monkey retry half` tries again.\n"
    assert {sweep["state"] for sweep in shop.json("status")["sweeps"]} == {"succeeded", "failed"}
    assert shop.json("plan")["changes"] is False


def test_formats_for_programs_exclude_each_other(shop: Shop) -> None:
    shop.spec(jobs=1)
    assert "--json and --markdown exclude each other" in shop.run("plan", "--json", "--markdown", code=1).stderr
    assert "--csv and --json exclude each other" in shop.run("results", "--json", "--csv", code=1).stderr


def test_logs_follow_a_job_to_its_end_byte_for_byte(shop: Shop) -> None:
    script = r"printf 'one\n'; sleep 1; printf '\033[31mtwo\377\n'"
    shop.spec(f"command: [sh, -c, '{script.replace(chr(39), chr(39) * 2)}']\nparameters: {{}}\noutputs: []\n")
    shop.run("apply", "--detach")
    (job,) = shop.json("list", "jobs")
    follow = shop.start("logs", "-f", job["job"], text=False)
    out, err = follow.communicate(timeout=PATIENCE)
    assert follow.returncode == 0, err
    assert out == b"one\n\x1b[31mtwo\xff\n"
    assert shop.run("logs", "sweep").stdout.startswith("one\n"), "of one job, there is nothing to tell apart"


@pytest.mark.slow
def test_each_attempt_has_its_log_under_the_number_that_the_job_was_told(shop: Shop, store: Path) -> None:
    command = """['sh', '-c', 'echo try $MONKEY_ATTEMPT; test $MONKEY_ATTEMPT = 2']"""
    shop.spec(f"command: {command}\nparameters: {{}}\noutputs: []\nmax_retries: 1\n")
    shop.run("apply")
    (job,) = [row["job"] for row in shop.json("list", "jobs")]
    told = [(one["attempt"], one["outcome"]) for one in shop.json("info", job)["attempts"]]
    assert told == [(1, "failed"), (2, "succeeded")]
    assert shop.run("logs", job).stdout == "try 2\n"
    assert [shop.run("logs", job, "--attempt", str(n)).stdout for n in (1, 2)] == ["try 1\n", "try 2\n"]
    missing = shop.run("logs", job, "--attempt", "3", code=1).stderr
    assert f"job {job} has no attempt 3, but 1 to 2" in missing and f"`monkey info {job}`" in missing
    assert "expected a job, found 'sweep'" in shop.run("logs", "sweep", "--attempt", "1", code=1).stderr
    # What status counts by, and the entry itself: where the two differ, info says by whose word the job succeeded.
    (end,) = store.glob(f"projects/*/jobs/{job}/00000004")
    end.write_bytes(b"")
    assert shop.states() == {"succeeded": 1}
    told = shop.run("info", job).stdout
    assert re.search(rf"2 .* succeeded, says its agent's journal; its end, \S*{job}/00000004, was emptied", told), told
    assert "lost" not in told


@pytest.mark.slow
def test_everything_that_lists_has_json(shop: Shop) -> None:
    shop.spec("metric: {name: loss}\n", jobs=2)
    shop.run("apply")
    (sweep,) = shop.json("list", "sweeps")
    assert (sweep["name"], sweep["jobs"], sweep["state"]) == ("sweep", 2, "succeeded")
    jobs = shop.json("list", "jobs", "sweep", "--state", "succeeded")
    assert [job["parameters"] for job in jobs] == [{"i": 0}, {"i": 1}]
    rows = shop.json("results", "sweep")
    assert {"job", "state", "parameters", "metrics"} <= set(rows[0])
    assert shop.json("list", "providers")[0]["name"] == "local"
    assert shop.json("info", "sweep")["settings"]["metric"] == "loss"
    assert shop.json("info", jobs[0]["job"][:10])["attempts"][0]["outcome"] == "succeeded"
    assert shop.json("status")["problems"] == []
    assert shop.run("results", "sweep", "--csv").stdout.splitlines()[0].startswith("job,state,i")
    assert json.loads(shop.run("schema").stdout)["type"] == "object"


def test_init_makes_a_project_that_runs(shop: Shop) -> None:
    shop.run("init", "fresh")
    done = shop.run("-C", "fresh", "apply")
    assert "all 24 jobs succeeded" in done.stdout and "best loss" in done.stdout
    rows = json.loads(shop.run("-C", "fresh", "results", "--json").stdout)
    assert len(rows) == 24 and rows[0]["metrics"]["loss"] <= rows[-1]["metrics"]["loss"]
    # What a run by hand and an editor leave, and the output of monkey itself, make nothing stale.
    for name in ("__pycache__/train.pyc", "model.json", "apply.log", "notes.txt"):
        (shop.root / "fresh" / name).parent.mkdir(exist_ok=True)
        (shop.root / "fresh" / name).write_text("litter")
    assert "24 kept" in shop.run("-C", "fresh", "plan").stdout
    again = shop.run("init", "fresh", code=1)
    assert "there already; nothing was written" in again.stderr


@pytest.mark.slow
def test_saved_plan_is_applied_as_shown_or_refused(shop: Shop) -> None:
    shop.spec(jobs=2)
    shop.run("plan", "-o", "plan.json")
    assert "not be" not in shop.run("plan", "-o", "other.json", code=1).stdout
    shop.run("apply", "plan.json")
    assert shop.ledger.executions == 2
    assert "this plan was applied already" in shop.run("apply", "plan.json", code=1).stderr


@pytest.mark.slow
def test_concurrent_applies_lose_cleanly(shop: Shop) -> None:
    shop.spec(jobs=4, seconds=0.2)
    rivals = [shop.start("apply") for _ in range(4)]
    ends = [(*rival.communicate(timeout=120), rival.returncode) for rival in rivals]
    assert any(code == 0 for _, _, code in ends)
    for out, err, code in ends:
        assert code == 0 or "changed by somebody else" in err, out + err
    shop.run("apply")
    assert shop.ledger.executions == 4 and not shop.ledger.overlaps


@pytest.mark.parametrize("how", [signal.SIGINT])
def test_interrupt_detaches_and_says_how_to_come_back(shop: Shop, how: int) -> None:
    shop.spec(jobs=4)
    shop.ledger.hold()
    apply = shop.start("apply")
    until(lambda: shop.ledger.executions, "work begins")
    os.kill(apply.pid, how)
    out, err = apply.communicate(timeout=PROMPT)
    assert apply.returncode == 130, out + err
    shop.ledger.release()
    for way in ("monkey status sweep", "monkey status -w sweep", "monkey cancel sweep"):
        assert way in out
    until(lambda: len(shop.ledger.digests) == 4, "the sweep goes on")
    assert not shop.ledger.overlaps
    shop.run("apply")


@pytest.mark.slow
def test_removal_of_running_jobs_is_asked_for(shop: Shop) -> None:
    shop.spec(jobs=2, seconds=30)
    shop.run("apply", "--detach")
    until(lambda: shop.states().get("running") == min(2, SLOTS), "jobs run, and the store says so")
    shop.spec(jobs=1, seconds=0.1)
    refused = shop.run("apply", code=1)
    assert "--yes" in refused.stderr and "no longer wanted" in refused.stderr
    shop.run("apply", "--yes")
    assert shop.states() == {"succeeded": 1}


def test_agent_leaves_when_it_is_idle(shop: Shop) -> None:
    (shop.root / "monkey.yaml").write_text("project: shop\nproviders: {local: {idle_timeout: 1s}}\n")
    shop.spec(jobs=1)
    shop.run("apply")
    until(lambda: not shop.processes(), "the agent leaves", patience=PROMPT)
