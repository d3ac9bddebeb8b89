"""A job that saves a large, checksummed checkpoint all the time, and notes in a ledger what it found and what it did.

`python saver.py LEDGER MEGABYTES aside|in-place STEPS`: the ledger is outside of the store; the job ends after so many.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path

LEDGER, SIZE, HOW, STEPS = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
STATE = Path(os.environ["MONKEY_CHECKPOINT_DIR"]) / "state"
#: Bytes of the head: the step and the SHA-256 of what follows, as JSON.
HEAD = 128


def note(what: str, **more: object) -> None:
    """Write a line to the ledger, at once."""
    line = json.dumps({"what": what, "pid": os.getpid(), "attempt": int(os.environ["MONKEY_ATTEMPT"]), **more})
    fd = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


def load() -> int:
    """Return the step that the checkpoint was saved after; 0 where there is none."""
    if not STATE.exists():
        note("fresh", beside=sorted(path.name for path in STATE.parent.iterdir()))
        return 0
    data = STATE.read_bytes()
    try:
        head = json.loads(data[:HEAD])
    except ValueError:
        head = {"step": -1, "sha256": ""}
    whole = len(data) == HEAD + (SIZE << 20) and hashlib.sha256(data[HEAD:]).hexdigest() == head["sha256"]
    note("restored", step=head["step"], whole=whole, bytes=len(data))
    return int(head["step"]) if whole else 0


def save(step: int) -> None:
    """Save the checkpoint after a step: piece by piece, so that a kill can come between any two."""
    block = random.Random(step).randbytes(1 << 20)
    digest = hashlib.sha256()
    for _ in range(SIZE):
        digest.update(block)
    path = STATE.with_name("state.tmp") if HOW == "aside" else STATE
    with path.open("wb", buffering=0) as file:
        file.write(json.dumps({"step": step, "sha256": digest.hexdigest()}).encode().ljust(HEAD))
        for _ in range(SIZE):
            file.write(block)
    path.replace(STATE)


if __name__ == "__main__":
    lock = os.open(f"{LEDGER}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note("overlap")
    for step in range(load() + 1, STEPS + 1):
        note("step", step=step)
        if HOW == "in-place":
            time.sleep(0.1)  # what is never left alone can only be captured by luck: minutes of it
        save(step)
        note("saved", step=step)
        if Path(f"{LEDGER}.enough").exists():
            break
    note("end")
