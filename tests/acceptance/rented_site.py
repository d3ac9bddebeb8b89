"""A project for machines that are rented: applied as ever, but for who rents them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from monkey.apply.execute import execute_plan
from monkey.apply.planning import make_plan
from monkey.apply.world.world import open_world
from monkey.signing.entry_signers import load_user_signers
from monkey.signing.machine_list import hash_signers
from monkey.spec.project.project import load_project
from monkey.store.open import locate_url, open_store
from monkey.store.store_port import Store
from monkey_stacks.boot import MachineSettings, write_user_data
from monkey_stacks.bundle import publishing
from monkey_stacks.bundle.bundle import Bundle
from tests.acceptance.ledger import Ledger
from tests.acceptance.shop import Shop, until
from tests.acceptance.site import Elsewhere
from tests.rented.machine import SHARED, Rented
from tests.trusting import trust

#: All of them are looked after by somebody else.
FLEETS = ("rented", "lab", "here")
#: Seconds within which a machine has ended: of several that boot at once, on a machine with two cores.
LONG = 300.0
#: Counts, saves after each step, and notes where and when.
STEPPER = """\
import hashlib, json, os, sys, time
state = os.environ["MONKEY_CHECKPOINT_DIR"] + "/step"
step = int(open(state).read()) if os.path.exists(state) else 0
told = hashlib.sha256(os.environ.get("TOLD", "").encode()).hexdigest()
def note(what):
    line = {"what": what, "told": told}
    with open(sys.argv[1] + "/steps", "a") as file:
        file.write(json.dumps({**line, "step": step, "at": time.time(), "machine": os.uname().nodename}) + "\\n")
note("begun")
while not os.path.exists(sys.argv[1] + "/enough"):
    step += 1
    with open(state + ".aside", "w") as file:
        file.write(str(step))
    os.replace(state + ".aside", state)
    note("saved")
    time.sleep(0.1)
"""


class RentedSite:
    """A project for the fleet `rented`, whose machines a cloud boots."""

    def __init__(self, shop: Shop, store: str, shared: Path, about: Mapping[str, Any]) -> None:
        """Make the project, and its store; `about`: what all machines are told."""
        self.shop, self.url, self._about = shop, locate_url(store), about
        # Who applies in this process is the user whose commands the shop runs.
        shop.env["XDG_CONFIG_HOME"] = os.environ["XDG_CONFIG_HOME"]
        if endpoint := self.url.partition("endpoint=")[2].partition("&")[0]:
            trust(endpoint)
            trust(endpoint, env=shop.env)
        self.ledger = Ledger(shared)
        #: Where machines see the ledger.
        self.shared = f"{SHARED}/{shared.name}"
        # Who rents is not asked; that somebody does is said.
        rents = {"type": "aws", "region": "eu-central-1", "instance_type": "t3.micro"}
        fleets = {name: {"type": "local"} for name in FLEETS}
        said = {"project": "shop", "store": self.url, "providers": {**fleets, "unused": rents}}
        (shop.root / "monkey.yaml").write_text(json.dumps(said))

    def apply(self, text: str, *, jobs: int = 4, seconds: float = 0.05) -> None:
        """Apply a sweep, whose jobs keep the ledger that all machines share, as far as no machine is concerned."""
        command = f"command: [python3, job.py, {self.shared}, '{seconds}', '{{i}}']\n" if "command:" not in text else ""
        provider = "" if "provider:" in text else "provider: rented\n"
        self.shop.spec(f"{command}{text}{provider}", jobs=jobs)
        asyncio.run(self._apply())

    async def _apply(self) -> None:
        async with open_world(load_project(self.shop.root)) as world:
            world.fleets = {name: Elsewhere(name=name) for name in FLEETS}
            planned = await make_plan(world, ())
            await world.begin()
            await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)

    def user_data(self, group: str, *, bundle: str = "", **about: Any) -> str:
        """Return what machines of a group are told; the bundle is put into the store, unless it is another one."""
        told = {"orphan_timeout": 300.0, "idle_timeout": 600.0, "boot_patience": 900.0, **self._about, **about}
        built = self.publish()
        return write_user_data(
            MachineSettings(
                store=self.url,
                project="shop",
                fleet="rented",
                bundle=bundle or built.sha256,
                parts=len(built.parts),
                signers=hash_signers(load_user_signers().format_for_machine()),
                group=group,
                **told,
            )
        )

    def publish(self) -> Bundle:
        """Put the agent's code, and whom it obeys, into the store."""
        built = publishing.build_for_store(self.url, "x86_64")
        signers = load_user_signers().format_for_machine()
        self.in_store(lambda store: publishing.publish_once(store, built, signers, lambda said: None))
        return built

    def in_store(self, do: Callable[[Store], Any]) -> Any:
        """Do something with the store, and return what came of it."""

        async def opened() -> Any:
            store = await open_store(self.url)
            try:
                return await do(store)
            finally:
                await store.close()

        return asyncio.run(opened())

    def everything(self) -> dict[str, bytes]:
        """Return all that is in the store, by keys."""

        async def read(store: Store) -> dict[str, bytes]:
            return {item.key: await store.get(item.key) for item in await store.list("")}

        found: dict[str, bytes] = self.in_store(read)
        return found

    def ended(self, machine: Rented, turn: Callable[[], bool], why: str) -> None:
        """Wait until a machine has no power any more, by itself or by its cloud."""
        try:
            until(lambda: turn() and not machine.runs, why, patience=LONG)
        except AssertionError as exc:
            exc.add_note(machine.told)
            raise


def lines(path: Path) -> list[dict[str, Any]]:
    """Return what jobs noted in a file of theirs."""
    try:
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    except FileNotFoundError:
        return []


def ends(site: RentedSite) -> list[dict[str, Any]]:
    """Return the ends of all attempts."""
    found = [json.loads(data) for key, data in site.everything().items() if re.search(r"/jobs/[^/]+/[0-9]+$", key)]
    return [each for each in found if "outcome" in each]


def holding(secret: str, *directories: Path) -> list[str]:
    """Return the files below directories in which the secret is."""
    command = ["grep", "-rlaF", "--exclude-dir=proc", "--exclude-dir=sys", "-e", secret, *map(str, directories)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode in (0, 1), found.stderr
    return found.stdout.splitlines()
