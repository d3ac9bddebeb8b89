"""A lab and a project whose store is on one of its hosts, with the agents' jobs noting on each host what they did."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from monkey.apply.execute import execute_plan
from monkey.apply.planning import make_plan
from monkey.apply.world.world import open_world
from monkey.signing.entry_signers import load_user_signers
from monkey.spec.project.project import load_project
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey.store.open import locate_url, open_store
from monkey_stacks.ssh.host_state import HostPlan, ObservedHost
from monkey_stacks.ssh.operations import converge_host, observe_host, remove_fleet
from tests.acceptance.ledger import Ledger
from tests.acceptance.shop import Shop
from tests.host_root import USER
from tests.hosts import Lab, Machine
from tests.unit.apply.small_project import StillFleet

Result = TypeVar("Result")
#: A user's processes that are none of ours.
SYSTEM = re.compile(r"systemd|sshd|sd-pam|dbus-daemon")
#: Where jobs keep the ledger, on their host.
LEDGER = f"/home/{USER}/ledger"


class Elsewhere(StillFleet):
    """Machines that are looked after by others."""

    def check_secrets(self, names: Sequence[str]) -> None:
        """They have them."""


class Site:
    """A project for the fleet `lab`, whose machines are hosts of a lab."""

    def __init__(self, lab: Lab, shop: Shop, number: int) -> None:
        """Make the project, and its store on the host `store`."""
        self.lab, self.shop = lab, shop
        lab("store")
        self.url = locate_url(f"ssh://store/~/stores/{number}")
        # Who applies in this process is the user whose commands the shop runs.
        shop.env["XDG_CONFIG_HOME"] = os.environ["XDG_CONFIG_HOME"]
        os.environ["MONKEY_SSH_CONFIG"] = shop.env["MONKEY_SSH_CONFIG"] = str(lab.config)
        text = f"project: shop\nstore: {self.url}\nproviders: {{lab: {{type: local}}}}\n"
        (shop.root / "monkey.yaml").write_text(text)
        asyncio.run(self._begin())
        self.workdir = "~/.monkey"
        self.touched: dict[str, Machine] = {}

    async def _begin(self) -> None:
        await (await open_store(self.url, begin=True)).close()

    def wanted(self, **about: Any) -> HostPlan:
        """Return an agent as this project wants it; it stays without work."""
        told = {"signers": load_user_signers().format_for_machine(), **about}
        return dataclasses.replace(HostPlan(self.url, "shop", "lab", workdir=self.workdir, idle_timeout=3000), **told)

    def hosts(self, *names: str) -> list[Machine]:
        """Return these hosts, with an empty ledger each."""
        machines = self.lab(*names)
        for machine in machines:
            self.touched[machine.name] = machine
            ledger = machine.home / "ledger"
            if not ledger.exists():
                ledger.mkdir()
                os.chown(ledger, *machine.owner)
        return machines

    def ledger(self, machine: Machine) -> Ledger:
        """Return what jobs noted on a host."""
        return Ledger(machine.home / "ledger")

    def spec(self, text: str = "", *, jobs: int, seconds: float = 0.05) -> None:
        """Write the spec and apply it, without a look at machines."""
        command = f"command: [python3, job.py, '{LEDGER}', '{seconds}', '{{i}}']\n"
        self.shop.spec(("" if "command:" in text else command) + "provider: lab\n" + text, jobs=jobs)
        asyncio.run(self._apply())

    async def _apply(self) -> None:
        async with open_world(load_project(self.shop.root)) as world:
            world.fleets = {"lab": Elsewhere("lab")}
            planned = await make_plan(world, ())
            await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)

    def rows(self) -> list[dict[str, Any]]:
        """Return the jobs, as a second look at the store tells."""
        found: list[dict[str, Any]] = self.shop.json("list", "jobs", "sweep")
        return found

    def converge(self, *names: str, **about: Any) -> list[ObservedHost]:
        """Converge these hosts at once."""
        return at_once(lambda name: converge_host(parse_ssh_host(name), self.wanted(**about)), names)

    def observe(self, name: str, **about: Any) -> ObservedHost:
        """Look at a host."""
        return observe_host(parse_ssh_host(name), self.wanted(**about))

    def remove(self, *names: str) -> None:
        """Take all away from these hosts at once."""
        at_once(lambda name: remove_fleet(parse_ssh_host(name), self.wanted()), names)

    def close(self) -> None:
        """Leave the hosts as they were."""
        for machine in self.touched.values():
            machine.mend()
            if machine.leader is None:
                machine.start()
                machine.ready()
        self.lab("store")[0].mend()
        self.remove(*self.touched)
        for machine in self.touched.values():
            machine.within("rm", "-rf", LEDGER)


def at_once(what: Callable[[str], Result], names: Sequence[str]) -> list[Result]:
    """Do something for each name at the same time."""
    with ThreadPoolExecutor(max(len(names), 1)) as pool:
        return list(pool.map(what, names))


def left_on(machine: Machine) -> dict[str, Any]:
    """Return all that a user may leave on a host, but for what tests keep there themselves."""
    found = machine.within("find", "/home", "/tmp", "/var/tmp", "/var/spool/cron", "-user", USER).splitlines()
    ours = (LEDGER, f"/home/{USER}/stores")
    units = ("--all", "--plain", "--no-legend", "--user", f"--machine={USER}@", "monkey*")
    return {
        "files": sorted(path for path in found if not path.startswith(ours)),
        "processes": [line for line in machine.processes().splitlines() if not SYSTEM.search(line)],
        "units": machine.systemctl("list-units", *units),
        "crontab": machine.within("crontab", "-u", USER, "-l", code=None),
        "keys": (machine.home / ".ssh/authorized_keys").read_text(),
    }
