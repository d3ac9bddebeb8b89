"""A cloud whose machines are a number in a file, with when they go: whoever looks into it sees what was rented."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monkey.apply.world.world import World, open_world
from monkey.fleet.fleet_port import Recount, Say
from monkey.fleet.fleet_records import AuditFinding, FleetForecast, FleetWork, TaggedResource
from monkey.plan.cost import SECONDS_PER_HOUR, FleetCost
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.project import load_project
from monkey.store.content.upload_progress import Begin, show_no_progress
from tests.unit.apply.small_project import SPEC, StillRentedFleet

YAML = """\
project: test
providers:
  cloud: {{type: aws, region: eu-central-1, instance_type: paper.large, max_instances: 4, price: 1.01{more}}}
"""


@dataclass
class PaperFleet(StillRentedFleet):
    """Machines as a file, by the port alone."""

    name: str = "cloud"
    type: str = "aws"
    cloud: CloudSettings = field(default_factory=lambda: CloudSettings("", ()))
    file: Path = Path()

    def rented(self) -> dict[str, Any]:
        """Return what is rented: how many machines, and until when."""
        return dict(json.loads(self.file.read_text())) if self.file.exists() else {"machines": 0, "until": None}

    def _needed(self, work: FleetWork) -> int:
        return min(work.jobs, self.cloud.max_instances)

    async def preview(self, work: FleetWork) -> FleetForecast:
        before = self.rented()["machines"]
        if not work.jobs or work.expires is None:
            return FleetForecast(before, before)
        hours = (work.expires - time.time()) / SECONDS_PER_HOUR
        rented = self.rented()["until"] if before else None
        cost = FleetCost(
            self.cloud.max_instances,
            "paper.large",
            hours,
            work.expires,
            self.cloud.dearest,
            False,
            self.cloud.max_cost,
            rented,
        )
        return FleetForecast(before, max(before, self._needed(work)), cost=cost)

    def check_secrets(self, names: Sequence[str]) -> None:
        pass

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        machines = max(self.rented()["machines"], self._needed(work))
        say(f"{machines} machines asked for")
        self.file.write_text(json.dumps({"machines": machines, "until": work.expires}))

    async def destroy(self, say: Say, *, idle: bool = False) -> None:
        if not (idle and self.rented()["machines"]):
            self.file.unlink(missing_ok=True)
            say("removed")

    async def has_workers(self) -> bool:
        return False  # nobody waits for machines on paper

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        astray = self.file.with_suffix(".astray").exists()
        return (AuditFinding("i-2", "a machine that no apply has written down", "take it away"),) if astray else ()

    async def tagged_resources(self) -> tuple[TaggedResource, ...]:
        group = [TaggedResource("eu-central-1", "auto scaling group", "group")] if self.file.exists() else []
        names, price = [f"i-{n}" for n in range(self.rented()["machines"])], self.cloud.dearest
        return (*group, *(TaggedResource("eu-central-1", "instance paper.large", name, price) for name in names))


def write_rented(root: Path, expires: str = "12h", more: str = "", spec: str = SPEC) -> None:
    """Write a project of one spec that runs on machines which are rented."""
    (root / "specs").mkdir(parents=True, exist_ok=True)
    (root / "specs" / "small.yaml").write_text(f"{spec}provider: cloud\nexpires: {expires}\n")
    (root / "train.py").write_text("print('hello')\n")
    (root / "monkey.yaml").write_text(YAML.format(more=more))


@asynccontextmanager
async def renting(root: Path) -> AsyncIterator[tuple[World, PaperFleet]]:
    """Open the project at `root` with a cloud of paper."""
    async with open_world(load_project(root)) as world:
        cloud = world.project.providers["cloud"].cloud
        assert cloud is not None
        fleet = PaperFleet(cloud=cloud, file=root.with_name(f"{root.name}.rented"))
        world.fleets = {"cloud": fleet}
        yield world, fleet
