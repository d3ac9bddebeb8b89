"""`metrics: from`: the record of a job that never heard of monkey is what its files said, over all its attempts."""

from __future__ import annotations

import io
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import Shop, until
from tests.unit.monkey_agent.collecting import event_files

STEPS = 36
#: Writes what it measures in four forms, and notes it in a ledger. A checkpoint follows every third step.
JOB = """\
import json, os, random, sys, time
from event_files import event, simple

ledger, state = sys.argv[1], os.environ["MONKEY_CHECKPOINT_DIR"] + "/state.json"
run = {name: os.environ[name] for name in ("WANDB_RUN_ID", "WANDB_RESUME", "WANDB_RUN_GROUP", "MLFLOW_RUN_NAME")}
done = json.load(open(state))["step"] if os.path.exists(state) else 0
os.makedirs("runs/now", exist_ok=True)
events = open(f"runs/now/events.out.tfevents.{time.time_ns()}.host", "ab", buffering=0)
table = open("log.csv", "a", buffering=1)
table.write("epoch,loss\\n")
for step in range(done + 1, 37):
    value = random.random()
    with open(ledger, "a") as file:
        begun = os.environ["MONKEY_ATTEMPT"], done
        file.write(json.dumps({"step": step, "begun": begun, "value": value, "run": run}) + "\\n")
    events.write(event(step, simple("acc/val", value)))
    table.write(f"{step},{value}\\n")
    print(f"step {step}: mean={value}", flush=True)
    if step % 3 == 0:
        with open(state + ".new", "w") as file:
            json.dump({"step": step}, file)
        os.rename(state + ".new", state)
    time.sleep(0.15)
"""


def test_a_job_that_is_killed_twice_has_the_values_of_its_files(shop: Shop) -> None:
    ledger = prepare(shop)
    shop.run("apply", "--detach")
    for steps in (14, 25):
        until(lambda steps=steps: noted(ledger)[-1:] and noted(ledger)[-1]["step"] >= steps, "it has come so far")
        shop.kill(shop.agents)
        shop.run("apply", "--detach")
    shop.run("apply")
    assert shop.states() == {"succeeded": 1}
    lines = noted(ledger)
    begins = sorted({tuple(line["begun"]) for line in lines})
    assert len(begins) == 3 and begins[-1][1] > 0, "it did not continue from a checkpoint"
    # Later lines are of later attempts: they have the steps that were lost with earlier ones.
    values = {line["step"]: line["value"] for line in lines}
    assert list(values) == list(range(1, STEPS + 1))
    [row] = shop.json("metrics", "sweep")
    curves = {name: dict(zip(of["steps"], of["values"], strict=True)) for name, of in row["metrics"].items()}
    single = {step: struct.unpack("<f", struct.pack("<f", value))[0] for step, value in values.items()}
    assert curves == {"acc/val": single, "loss": values, "mean": values}
    [result] = shop.json("results", "sweep")
    assert result["metrics"]["loss"] == values[STEPS] and result["summary"]["mean"]["count"] == STEPS
    assert "all as recorded" in shop.run("verify", "sweep").stdout
    job = row["job"]
    expected = {"WANDB_RUN_ID": job, "WANDB_RESUME": "allow", "WANDB_RUN_GROUP": "sweep"}
    assert all(line["run"] == {**expected, "MLFLOW_RUN_NAME": "mine"} for line in lines), "env: goes before"
    # What is read is no part of what a job is.
    prepare(shop, pattern=r"mean=(?P<average>\S+)")
    plan = shop.run("plan").stdout
    assert "metrics.from" in plan and "1 kept" in plan
    shop.run("apply")
    assert len(noted(ledger)) == len(lines)


def prepare(shop: Shop, pattern: str = r"step (?P<step>\d+): mean=(?P<mean>\S+)") -> Path:
    """Write the job and its spec; returns the ledger."""
    ledger = shop.root.parent / "noted"
    shutil.copy(Path(event_files.__file__), shop.root / "event_files.py")
    (shop.root / "train.py").write_text(JOB)
    sources = json.dumps({"from": ["tensorboard", {"stdout": pattern}, {"csv": "log.csv"}]})
    shop.spec(
        f"command: [python3, train.py, '{ledger}']\nparameters: {{}}\noutputs: []\nmetric: {{name: loss}}\n"
        f"checkpoint_every: 1s\nenv: {{MLFLOW_RUN_NAME: mine}}\nmetrics: {sources}\n"
    )
    return ledger


def noted(ledger: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(ledger)] if ledger.exists() else []


@pytest.mark.parametrize(
    ("sources", "error"),
    [
        ("{from: [tensorbord]}", "expected a source"),
        ("{from: [{csvs: x.csv}]}", "did you mean 'csv'?"),
        ("{from: [{stdout: 'loss=(?P<loss>'}]}", "the pattern cannot be read"),
        ("{from: [{stdout: 'loss=(.*)'}]}", "no named group"),
        ("{from: [{csv: ../x.csv}]}", "below the job's directories"),
        ("{influxdb: {}}", "expected {from: […]}"),
    ],
)
def test_sources_that_are_none_are_refused(shop: Shop, sources: str, error: str) -> None:
    shop.spec(f"metrics: {sources}\n")
    said = shop.run("validate", code=1)
    assert error in said.stdout + said.stderr


@pytest.mark.needs("pandas")
def test_two_tables_without_steps_are_both_kept(shop: Shop) -> None:
    import pandas

    (shop.root / "train.py").write_text(
        "for name in 'ab':\n"
        "    with open(f'{name}.csv', 'w') as file:\n"
        "        file.write(f'epoch,{name}1,{name}2\\n')\n"
        "        for at in range(5):\n"
        "            file.write(f'{at + 0.5},{at * 2},{at * 3}\\n')\n"
    )
    shop.spec(
        "command: [python3, train.py]\nparameters: {x: [1]}\noutputs: ['*.csv']\ncode: {include: [train.py]}\n"
        "metrics: {from: [csv: '*.csv']}\n"
    )
    shop.run("apply")
    shop.run("fetch", "sweep", "-o", "got")
    tables = [pandas.read_csv(path) for path in sorted((shop.root / "got").rglob("[ab].csv"))]
    written = {name: list(table[name]) for table in tables for name in table.columns if name != "epoch"}
    long = pandas.read_csv(io.StringIO(shop.run("metrics", "sweep", "--csv").stdout))
    found = {name: list(rows["value"]) for name, rows in long.groupby("metric")}
    assert found == written and len(written) == 4
