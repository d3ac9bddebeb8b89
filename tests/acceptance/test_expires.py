"""A sweep expires while its job runs, and is extended, as a user meets it: a real agent, a ledger outside the store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

#: Counts on from what it saved, notes each count, and ends well once it is told that it is enough.
COUNT = """\
import os, sys, time
from pathlib import Path
ledger, saved = Path(sys.argv[1]), Path(os.environ["MONKEY_CHECKPOINT_DIR"]) / "count"
found = int(saved.read_text()) if saved.exists() else 0
with (ledger / "began").open("a") as file:
    file.write('{"attempt": %s, "found": %d}\\n' % (os.environ["MONKEY_ATTEMPT"], found))
while not (ledger / "enough").exists():
    found += 1
    for file in (saved, ledger / "count"):
        file.with_suffix(".part").write_text(str(found))
        file.with_suffix(".part").replace(file)
    time.sleep(0.05)
"""


def write(shop: Shop, expires: str) -> None:
    (shop.root / "count.py").write_text(COUNT)
    command = f"command: [python3, count.py, '{shop.ledger.directory}', '{{i}}']\n"
    shop.spec(f"{command}outputs: []\ngrace: 5s\nexpires: {expires}\n", jobs=1)


def began(shop: Shop) -> list[dict[str, Any]]:
    file = shop.ledger.directory / "began"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_job_is_released_in_time_with_what_it_saved_and_goes_on_when_it_may(shop: Shop) -> None:
    # An agent that stays for long without work leaves at once when all that is left has expired.
    (shop.root / "monkey.yaml").write_text("project: shop\nproviders: {local: {idle_timeout: 10m}}\n")
    count = shop.ledger.directory / "count"
    write(shop, "1h")
    shop.run("apply", "--detach")
    until(count.exists, "the job runs and saves")
    assert "sweep: expires at " in shop.run("status").stdout
    write(shop, "10s")
    before = int(count.read_text())
    said = shop.run("apply", code=1).stdout
    assert "* expires 1h → 10s" in said and "It has expired (" in said
    assert "with 1 job left; `monkey extend sweep 6h` goes on." in said
    until(lambda: not shop.agents, "the agent leaves")
    assert shop.states() == {"expired": 1} and not shop.processes("count.py")
    (job,) = shop.json("list", "jobs")
    assert job["failures"] == 0, "it was taken from it, and has not failed"
    assert "It has expired (" in shop.run("apply", code=1).stdout and len(began(shop)) == 1, "an apply changes nothing"
    assert "nothing to extend" not in shop.run("extend", "sweep", "1h").stdout
    until(lambda: len(began(shop)) == 2, "it goes on")
    (shop.ledger.directory / "enough").touch()
    until(lambda: shop.states() == {"succeeded": 1}, "it ends")
    first, second = began(shop)
    assert first["found"] == 0 and second["attempt"] == first["attempt"] + 1
    assert before < second["found"], "from what was saved when it was released"
