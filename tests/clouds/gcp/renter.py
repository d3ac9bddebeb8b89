"""A fleet at Google as apply has it, without the sweeps.

`python -m tests.clouds.gcp.renter STORE ENTRY JOBS` converges in a process of its own, for who wants to kill it; with
no number of jobs it destroys.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from monkey.fleet.base import Forecast
from monkey.spec.provider import read
from monkey.store.base import Store
from monkey.store.open import open_store
from monkey_stacks.gcp_fleet import GcpFleet, make
from monkey_stacks.outcome import Resource
from tests.clouds.account import ROOT
from tests.clouds.gcp.offers import REGION
from tests.clouds.renter import work

T = TypeVar("T")

PROJECT, FLEET, GCP_PROJECT = "shop", "cloud", "my-project"
ENTRY: Mapping[str, Any] = {
    "type": "gcp",
    "gcp_project": GCP_PROJECT,
    "region": REGION,
    "machine_type": "e2-standard-2",
    "max_instances": 4,
}


class Renter:
    """Whoever applies."""

    def __init__(self, url: str, **entry: Any) -> None:
        """Keep the store at `url`; `entry` is what monkey.yaml says besides ENTRY."""
        self.url, self.entry = url, {**ENTRY, **entry}
        self.said: list[str] = []

    def run(self, ask: Callable[[GcpFleet], Awaitable[T]]) -> T:
        """Ask the fleet, with the store open."""

        async def opened() -> T:
            store: Store = await open_store(self.url, begin=True)
            try:
                return await ask(make(FLEET, read(self.entry), PROJECT, self.url, lambda: store))
            finally:
                await store.close()

        return asyncio.run(opened())

    def preview(self, jobs: int = 8) -> Forecast:
        return self.run(lambda fleet: fleet.preview(work(jobs)))

    def converge(self, jobs: int = 8) -> None:
        self.run(lambda fleet: fleet.converge(work(jobs), self.said.append))

    def destroy(self) -> None:
        self.run(lambda fleet: fleet.destroy(self.said.append))

    def known(self) -> dict[str, Resource]:
        """Return what the state has."""

        async def ask(fleet: GcpFleet) -> dict[str, Resource]:
            return {each.name: each for each in await fleet._known()}

        return self.run(ask)

    def start(self, jobs: int | None = 8) -> subprocess.Popen[str]:
        """Begin to converge (None: to destroy) in a process of its own, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "tests.clouds.gcp.renter", self.url, json.dumps(self.entry), json.dumps(jobs)],
            cwd=ROOT,
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def main(url: str, entry: str, jobs: str) -> None:
    renter, wanted = Renter(url, **json.loads(entry)), json.loads(jobs)
    renter.destroy() if wanted is None else renter.converge(wanted)
    print("\n".join(renter.said))


if __name__ == "__main__":
    main(*sys.argv[1:])
