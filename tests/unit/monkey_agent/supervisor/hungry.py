"""An agent whose jobs may hold 64 MiB each: `hungry.py PLACE COMMAND`. It prints how they ended, as JSON.

A neighbour with the same limit waits until the command's job has ended; then it writes "went on" into its ledger.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from body import Body, script

from monkey.spec.job.recipe import JobResources

LIMIT = 64 << 20
NEIGHBOUR = """
import os, time
block = bytearray(32 << 20)
while not os.path.exists("{0}/over"): time.sleep(0.01)
open("{0}/ledger", "a").write("went on")
"""


async def main(place: Path, command: str) -> None:
    """Run both, and print what became of them."""
    said: list[str] = []
    body = Body(place)
    body.runner.errors.say = said.append
    settings = {"resources": JobResources(memory=LIMIT)}
    neighbour = await body.start(script(NEIGHBOUR.replace("{0}", str(place))), settings=settings)
    running = await body.start(script(command), settings=settings)
    outcome = await running.wait()
    (place / "over").touch()
    other = await neighbour.wait()
    told = [outcome.ending, outcome.reason, outcome.exit_code, str(other.ending), other.reason]
    print(json.dumps({"told": told, "said": said}))
    await body.runner.close()
    await body.runner.telemetry.close()


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
