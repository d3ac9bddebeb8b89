"""The sockets of a job: programs that never heard of monkey send line protocol, and its record has all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import Shop, until

STEPS = 36
#: Sends what it measures, and notes it in a ledger. A checkpoint follows every third step.
JOB = """\
import json, os, random, socket, subprocess, sys, time

ledger, state = sys.argv[1], os.environ["MONKEY_CHECKPOINT_DIR"] + "/state.json"
done = json.load(open(state))["step"] if os.path.exists(state) else 0
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sender.connect(os.environ["MONKEY_METRICS_SOCKET"])
host, port = os.environ["MONKEY_METRICS_UDP"].split(":")
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for step in range(done + 1, 37):
    value = random.random()
    with open(ledger, "a") as file:
        file.write(json.dumps({"step": step, "begun": [os.environ["MONKEY_ATTEMPT"], done], "value": value}) + "\\n")
    sender.send(f"train,layer=conv\\\\ 1 loss={value!r},step={step}i".encode())
    udp.sendto(f"acc value={value!r},iteration={step}i\\n".encode(), (host, int(port)))
    if step == 36:  # as docs/metrics.md has it
        subprocess.run(["bash", "-c", "echo 'done value=t' >/dev/udp/${MONKEY_METRICS_UDP/:/\\/}"], check=True)
        sender.send(b"nonsense")
    if step % 3 == 0:
        with open(state + ".new", "w") as file:
            json.dump({"step": step}, file)
        os.rename(state + ".new", state)
    time.sleep(0.05)
    while step == 30 and os.environ["MONKEY_ATTEMPT"] == "1":  # until it is killed
        time.sleep(0.05)
"""


@pytest.mark.slow
def test_a_job_that_is_killed_and_resumed_has_what_it_sent(shop: Shop) -> None:
    ledger = shop.root.parent / "noted"
    (shop.root / "train.py").write_text(JOB)
    shop.spec(
        f"command: [python3, train.py, '{ledger}']\nparameters: {{}}\noutputs: []\n"
        "metric: {name: train/loss}\ncheckpoint_every: 1s\n"
    )
    shop.run("apply", "--detach")
    stored = ".monkey/store/projects/shop/jobs/*/checkpoints/*/*"
    until(lambda: noted(ledger)[-1:] and noted(ledger)[-1]["step"] == 30, "it has come so far")
    until(lambda: any(shop.root.glob(stored)), "a checkpoint is in the store")
    shop.kill(shop.agents)
    shop.run("apply")
    assert shop.states() == {"succeeded": 1}
    lines = noted(ledger)
    begins = sorted({tuple(line["begun"]) for line in lines})
    assert len(begins) == 2 and begins[-1][1] > 0, "it did not continue from a checkpoint"
    # Later lines are of the later attempt: they have the steps that were lost with the earlier one.
    values = {line["step"]: line["value"] for line in lines}
    [row] = shop.json("metrics", "sweep")
    curves = {name: dict(zip(of["steps"], of["values"], strict=True)) for name, of in row["metrics"].items()}
    assert curves == {"train/loss": values, "acc": values, "done": {None: 1}}
    [result] = shop.json("results", "sweep")
    assert result["metrics"]["train/loss"] == values[STEPS] and result["summary"]["acc"]["count"] == STEPS
    assert "1 lines that were sent are no line protocol" in shop.run("logs", row["job"]).stdout
    assert "all as recorded" in shop.run("verify", "sweep").stdout


def noted(ledger: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(ledger)] if ledger.exists() else []


@pytest.mark.slow
def test_a_job_that_sends_faster_than_anybody_reads_loses_nothing_by_its_unix_socket(shop: Shop) -> None:
    code = (
        "import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
        "s.connect(os.environ['MONKEY_METRICS_SOCKET']); "
        "[s.send(b'loss value=%d,step=%di' % (i, i)) for i in range(20000)]"
    )
    shop.spec(f"command: [python3, -c, {json.dumps(code)}]\nparameters: {{i: {{range: [0, 2]}}}}\noutputs: []\n")
    shop.run("apply")
    for row in shop.json("metrics", "sweep"):
        assert row["metrics"]["loss"]["values"] == list(range(20000))
