"""Processes that want the same keys: `python racer.py URL NAME KEYS` is one, `race` starts them.

One prints "ready", waits for a line, then creates KEYS keys, every other one durably, and prints as JSON which it won.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

from monkey.store.create import Won, create_object
from monkey.store.open import open_store

#: Seconds that any of them may take.
PATIENCE = 180.0


def race(urls: list[str], keys: int) -> dict[int, bytes]:
    """Let one process a URL race for `race/{key % 7}/{key}`; returns what must be under each key that one of them won.

    AssertionError where two won the same.
    """
    racers = [
        subprocess.Popen(
            [sys.executable, __file__, url, f"racer{n}", str(keys)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n, url in enumerate(urls)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("\n")
            racer.stdin.flush()
        won = {n: json.loads(racer.communicate(timeout=PATIENCE)[0]) for n, racer in enumerate(racers)}
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    winner = {key: f"racer{n}:{key}".encode() for n, mine in won.items() for key in mine}
    assert sum(map(len, won.values())) == len(winner), "a key was won twice"
    return winner


async def main(url: str, name: str, keys: int) -> None:
    store = await open_store(url)
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for n in range(keys):
        if isinstance(await create_object(store, f"race/{n % 7}/{n}", f"{name}:{n}".encode(), durable=n % 2 == 0), Won):
            won.append(n)
    print(json.dumps(won))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
