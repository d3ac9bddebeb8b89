"""One of several processes that want the same keys: `python racer.py URL NAME KEYS durable|loose`.

Prints "ready", waits for a line, then creates KEYS keys and prints, as JSON, which it won.
"""

from __future__ import annotations

import asyncio
import json
import sys

from monkey.store.create import Won, create
from monkey.store.open import open_store


async def main(url: str, name: str, keys: int, durable: bool) -> None:
    store = await open_store(url)
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for n in range(keys):
        if isinstance(await create(store, f"race/{n % 7}/{n}", f"{name}:{n}".encode(), durable=durable), Won):
            won.append(n)
    print(json.dumps(won))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "durable"))
