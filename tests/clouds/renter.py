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
from typing import Any, ClassVar, TypeVar

from monkey.fleet.fleet_records import FleetForecast, FleetWork
from monkey.signing.entry_signers import EntrySigners, load_user_signers
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.provider import parse_provider
from monkey.store.open import open_store
from monkey.store.store_port import Store
from monkey_stacks.aws.fleet import make_fleet
from monkey_stacks.cloud.cloud_fleet import CloudFleet
from monkey_stacks.engine.engine_outcome import StateResource
from tests.clouds.account import REGION, ROOT

T = TypeVar("T")

PROJECT, FLEET = "shop", "cloud"


class Renter:
    """Whoever applies: at AWS, unless a subclass says otherwise."""

    #: Makes the fleet; jobs there are, where no number is given; what monkey.yaml says, where it says nothing else.
    make: ClassVar[Callable[..., CloudFleet]] = staticmethod(make_fleet)
    fleet: str = FLEET
    jobs: ClassVar[int] = 4
    usual: ClassVar[Mapping[str, Any]] = {
        "type": "aws",
        "region": REGION,
        "instance_type": ["m5.large", "m5.xlarge"],
        "max_instances": 4,
    }

    def __init__(self, url: str, **entry: Any) -> None:
        """Keep the store at `url`; `entry` is what monkey.yaml says besides what is usual."""
        self.url, self.entry = url, {**self.usual, **entry}
        self.said: list[str] = []
        #: Whom its user trusts.
        self.signers: Callable[[], EntrySigners] = load_user_signers

    def run(self, ask: Callable[[CloudFleet], Awaitable[T]]) -> T:
        """Ask the fleet, with the store open."""

        async def opened() -> T:
            store: Store = await open_store(self.url, begin=True)
            try:
                of = parse_provider(self.entry)
                return await ask(self.make(self.fleet, of, PROJECT, self.url, lambda: store, self.signers))
            finally:
                await store.close()

        return asyncio.run(opened())

    def preview(self, jobs: int | None = None) -> FleetForecast:
        return self.run(lambda fleet: fleet.preview(self.work(jobs)))

    def converge(self, jobs: int | None = None) -> None:
        self.run(lambda fleet: fleet.converge(self.work(jobs), self.said.append))

    def destroy(self) -> None:
        self.run(lambda fleet: fleet.destroy(self.said.append))

    def known(self) -> dict[str, StateResource]:
        """Return what the state has."""

        async def ask(fleet: CloudFleet) -> dict[str, StateResource]:
            return {each.name: each for each in await fleet._known()}

        return self.run(ask)

    def start(self, jobs: int | None) -> subprocess.Popen[str]:
        """Begin to converge (None: to destroy) in a process of its own, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", type(self).__module__, self.url, json.dumps(self.entry), json.dumps(jobs)],
            cwd=ROOT,
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def work(self, jobs: int | None) -> FleetWork:
        """Return what there is to do, until noon of a day that is the same in every process."""
        noon = (time.time() // 86400 + 2) * 86400.0
        jobs = self.jobs if jobs is None else jobs
        return FleetWork(jobs, expires=noon, asked=((JobResources(cpus=1), jobs),) if jobs else ())


def main(kind: type[Renter], url: str, entry: str, jobs: str) -> None:
    """Converge for so many jobs; destroy for none (null)."""
    renter, wanted = kind(url, **json.loads(entry)), json.loads(jobs)
    renter.destroy() if wanted is None else renter.converge(wanted)
    print("\n".join(renter.said))


if __name__ == "__main__":
    main(Renter, *sys.argv[1:])
