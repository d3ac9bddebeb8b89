"""`python -m tests.stacks.applier BASE STORE SHEETS`: one `up` in a process of its own, for who wants to kill it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.stacks.desk import Desk, Sheet, ops


def main(base: str, url: str, said: str) -> None:
    desk = Desk(Path(base), url)
    outcome = desk.up(*(Sheet(*each) for each in json.loads(said)))
    outcome.check()
    print(json.dumps(ops(outcome)))


if __name__ == "__main__":
    main(*sys.argv[1:])
