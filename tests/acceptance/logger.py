# ruff: noqa: PTH104, PTH123
"""A job that logs metrics, saves checkpoints, and notes in a ledger what it logged: what its record must say.

`python logger.py LEDGER STEPS PAUSE [MOOD]`: values depend on the attempt, which logs `val` at steps of its choice. A
checkpoint follows every fifth step. `$MONKEY_OUTPUT_DIR` gets a file for each step. MOOD is how probably an attempt
begins again at the first step in spite of its checkpoint, or ends up to ten steps early.
"""

import json
import os
import random
import sys
import time

import monkey

ledger, steps, pause, mood = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float([*sys.argv, 0][4])
attempt, job = os.environ["MONKEY_ATTEMPT"], os.environ["MONKEY_JOB"]
state = os.environ["MONKEY_CHECKPOINT_DIR"] + "/state.json"
random.seed(f"{job} {attempt}")
#: This execution; an attempt has one.
me = f"{os.getpid()} {time.time_ns()}"


def note(**what: object) -> None:
    fd = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, (json.dumps({"job": job, "by": me, **what}) + "\n").encode())
    os.close(fd)


try:
    with open(state) as file:
        saved = json.load(file)
except FileNotFoundError:
    saved = {"step": 0, "by": None}
begun = 0 if random.random() < mood else saved["step"]
steps -= random.randint(1, 10) if random.random() < mood else 0
note(what="begin", step=begun, saved_by=saved["by"])
for step in range(begun + 1, steps + 1):
    loss = random.uniform(0.5, 1.5)
    # Noted first: what is logged is in the ledger. What is only in the ledger was logged by no killed process.
    note(what="log", step=step, loss=loss)
    monkey.log("loss", loss, step=step)
    if random.random() < 0.4:
        note(what="log", step=step, val=loss / 2)
        monkey.log("val", loss / 2, step=step)
    with open(f"{os.environ['MONKEY_OUTPUT_DIR']}/{step}.txt", "w") as file:
        file.write(attempt)
    if step % 5 == 0:
        with open(f"{state}.tmp", "w") as file:
            json.dump({"step": step, "by": me}, file)
        os.rename(f"{state}.tmp", state)
    time.sleep(pause)
note(what="end")
