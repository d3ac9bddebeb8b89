"""A fleet at AWS as apply has it, without the sweeps: what is asked of it is how many jobs there are.

`python -m tests.clouds.renter STORE ENTRY JOBS` converges in a process of its own, for who wants to kill it; with no
number of jobs it destroys.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from monkey.fleet.base import Forecast, Work
from monkey.spec.provider import read
from monkey.spec.recipe import Resources
from monkey.store.base import Store
from monkey.store.open import open_store
from monkey_stacks.aws_fleet import AwsFleet, make
from monkey_stacks.outcome import Resource
from tests.clouds.account import REGION, ROOT

T = TypeVar("T")

PROJECT, FLEET = "shop", "cloud"
ENTRY: Mapping[str, Any] = {
    "type": "aws",
    "region": REGION,
    "instance_type": ["m5.large", "m5.xlarge"],
    "max_instances": 4,
}


class Renter:
    """Whoever applies."""

    def __init__(self, url: str, **entry: Any) -> None:
        """Keep the store at `url`; `entry` is what monkey.yaml says besides ENTRY."""
        self.url, self.entry = url, {**ENTRY, **entry}
        self.said: list[str] = []

    def run(self, ask: Callable[[AwsFleet], Awaitable[T]]) -> T:
        """Ask the fleet, with the store open."""

        async def opened() -> T:
            store: Store = await open_store(self.url, begin=True)
            try:
                return await ask(make(FLEET, read(self.entry), PROJECT, self.url, lambda: store))
            finally:
                await store.close()

        return asyncio.run(opened())

    def preview(self, jobs: int = 4) -> Forecast:
        return self.run(lambda fleet: fleet.preview(work(jobs)))

    def converge(self, jobs: int = 4) -> None:
        self.run(lambda fleet: fleet.converge(work(jobs), self.said.append))

    def destroy(self) -> None:
        self.run(lambda fleet: fleet.destroy(self.said.append))

    def known(self) -> dict[str, Resource]:
        """Return what the state has."""

        async def ask(fleet: AwsFleet) -> dict[str, Resource]:
            return {each.name: each for each in await fleet._known()}

        return self.run(ask)

    def start(self, jobs: int | None = 4) -> subprocess.Popen[str]:
        """Begin to converge (None: to destroy) in a process of its own, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.clouds.renter", self.url, json.dumps(self.entry), json.dumps(jobs)],
            cwd=ROOT,
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def work(jobs: int) -> Work:
    """Return what there is to do, until noon of a day that is the same in every process."""
    noon = (time.time() // 86400 + 2) * 86400.0
    return Work(jobs, expires=noon, asked=((Resources(cpus=1), jobs),) if jobs else ())


def main(url: str, entry: str, jobs: str) -> None:
    renter, wanted = Renter(url, **json.loads(entry)), json.loads(jobs)
    renter.destroy() if wanted is None else renter.converge(wanted)
    print("\n".join(renter.said))


if __name__ == "__main__":
    main(*sys.argv[1:])
