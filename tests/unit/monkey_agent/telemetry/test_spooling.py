"""What jobs log for an InfluxDB that nobody answers for: it waits on the disk, and no job is the worse for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from monkey.metrics.spool import Spool, load_json
from monkey.metrics.spool_reader import SpoolBacklog
from monkey.spec.project.influx_settings import InfluxSettings
from monkey_agent.execution.runner import LocalRunner
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, script, until

NOWHERE = {"influx": InfluxSettings("http://127.0.0.1:1", bucket="m", token="INFLUX_TOKEN")}
LOGS = "import monkey\nfor i in range(3): monkey.log('loss', i + 0.5, step=i)\n"


def waiting(body: Body) -> bytes:
    """Return the points that an exporter would send now."""
    found = b""
    for path in sorted((body.state / "metrics").glob("*/influx.json")):
        backlog = SpoolBacklog(str(path.parent))
        backlog.look()
        while (batch := backlog.batch()) is not None:
            found += batch.body
    return found


def command_line(pid: int) -> bytes:
    """Return a process's command line, where that can be seen."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.read_bytes() if path.exists() else b""


def test_what_a_job_logged_waits_when_its_workspace_is_another_s(body: Body, run: Run) -> None:
    async def scenario() -> None:
        for number in (1, 2):
            outcome = await body.run(script(LOGS), settings=NOWHERE, job=f"{number:016x}")
            assert outcome.ending is AttemptEnd.SUCCEEDED and outcome.summary["loss"]["count"] == 3
        await body.run(script("pass"), settings=NOWHERE)
        lines = waiting(body).decode().splitlines()
        assert sorted(float(line.split("loss=")[1].split(",")[0]) for line in lines) == [0.5, 0.5, 1.5, 1.5, 2.5, 2.5]
        assert {line.split(",job=")[0] for line in lines} == {"metrics,attempt=1"}
        assert {line.split("job=")[1][:16] for line in lines} == {f"{1:016x}", f"{2:016x}"}
        (spool,) = (body.state / "metrics").glob("*/sources")
        assert len(list(spool.iterdir())) == 2, "the one that logged nothing is forgotten"

    run(scenario())


def test_it_is_told_that_nobody_answers_and_the_token_is_nowhere(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path, env={**os.environ, "INFLUX_TOKEN": "grauer-hase"})
        job = script(LOGS + "import os; print(dict(os.environ))")
        running = await body.start(job, settings=NOWHERE, withheld=frozenset({"INFLUX_TOKEN"}))
        outcome = await running.wait()
        assert outcome.ending is AttemptEnd.SUCCEEDED
        told: list[dict[str, Any]] = await until(
            lambda: [one for one in body.runner.telemetry.vitals().get("metrics", []) if one.get("error")]
        )
        assert "connection refused" in told[0]["error"] and told[0]["owed"] > 0
        running.leave(recorded=True)
        exporter = body.runner.telemetry._exporter
        assert exporter is not None
        assert b"grauer-hase" not in command_line(exporter.pid)
        await body.runner.close()
        await body.runner.telemetry.close()
        assert exporter.poll() is not None
        log = (await body.stored(running))["log/000000"]
        assert b"grauer-hase" not in log and b"MONKEY_METRICS_DIR" in log
        kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
        assert b"grauer-hase" not in kept

    run(scenario())


def test_secrets_that_come_late_are_not_reported_missing(tmp_path: Path) -> None:
    influx = NOWHERE["influx"]
    spool = Spool(str(tmp_path / "metrics"), influx)
    spool.add(b"m v=1 1\n")
    command = [sys.executable, "-P", "-m", "monkey.metrics.exporter", str(tmp_path / "metrics")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as exporter:
        time.sleep(1.0)  # an agent with much to do
        assert exporter.stdin is not None
        exporter.stdin.write(json.dumps({"secrets": {"INFLUX_TOKEN": "grauer-hase"}}).encode() + b"\n")
        exporter.stdin.flush()
        error, patience = "", time.monotonic() + 60
        while not error:
            assert exporter.poll() is None and time.monotonic() < patience
            time.sleep(0.01)
            error = load_json(f"{spool.path}/state.json").get("error", "")
        exporter.stdin.close()
    assert "connection refused" in error


def test_a_successor_sends_what_a_killed_agent_s_jobs_logged(body: Body, tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        first = await body.start(script(LOGS + "import time; time.sleep(1000)"), settings=NOWHERE)
        await until(lambda: first.progress().get("loss", {}).get("count") == 3)
        await body.runner.close()  # as if it was killed: nobody gave the workspace back
        await body.runner.telemetry.close()
        successor = LocalRunner(body.store, body.keys, body.state, body.cache)
        assert waiting(body).count(b"\n") == 3
        assert not os.path.exists(first._space.metrics)  # noqa: ASYNC240, PTH110
        await successor.close()
        await successor.telemetry.close()

    run(scenario())


def test_a_spool_that_cannot_be_written_is_told_and_costs_no_job(body: Body, run: Run) -> None:
    async def scenario() -> None:
        (body.state / "metrics").write_text("in the way")
        outcome = await body.run(script(LOGS), settings=NOWHERE)
        assert outcome.ending is AttemptEnd.SUCCEEDED and outcome.summary["loss"]["count"] == 3
        assert body.runner.telemetry.trouble.startswith("the spool cannot be written")

    run(scenario())
