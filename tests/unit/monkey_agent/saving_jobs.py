"""Jobs that save checkpoints, and what became of those."""

from __future__ import annotations

import sys
from typing import Any

from monkey.store.memory import MemoryStore
from tests.unit.monkey_agent.body import Body, until

JOB = "c" * 16
OFTEN = {"checkpoint_every": 0.01}

#: Counts its attempts; ends well with the third.
COUNT = [
    sys.executable,
    "-c",
    """
import os, sys
file = os.environ["MONKEY_CHECKPOINT_DIR"] + "/count"
count = int(open(file).read()) if os.path.exists(file) else 0
open(file, "w").write(str(count + 1))
print(count)
sys.exit(count < 2)
""",
]

#: Says what it finds, saves STATE, then stays until it is killed.
STAY = ["sh", "-c", 'cd "$MONKEY_CHECKPOINT_DIR"; cat state; printf "$1" > state; exec sleep 1000', "sh", "{state}"]


async def said(body: Body, running: Any) -> str:
    """What a job wrote, without our notes."""
    text = (await body.stored(running, "log/")).get("log/000000", b"").decode()
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("monkey: "))


async def in_store(body: Body) -> dict[str, bytes]:
    """What the job's checkpoints are in the store."""
    prefix = body.keys.checkpoints(JOB)
    return {item.key.removeprefix(prefix): await body.store.get(item.key) for item in await body.store.list(prefix)}


def objects(body: Body) -> dict[str, tuple[bytes, int]]:
    """What is in the store: looked into, not asked."""
    assert isinstance(body.store, MemoryStore)
    return body.store.state.objects


def kept(body: Body) -> list[str]:
    return sorted(path.name for path in (body.state / "checkpoints").iterdir())


async def saved(body: Body, running: Any, text: str) -> None:
    """Wait until a checkpoint that holds `text` is in the store."""

    def there() -> bool:
        lists = [key for key in objects(body) if key.startswith(body.keys.checkpoints(JOB)) and "/files/" not in key]
        return any(data == text.encode() for data, _ in objects(body).values()) and bool(lists)

    await until(there)
