"""What a plan says of GPUs of machines that it knows without asking any."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from monkey.apply.planning import make_plan
from monkey.spec.job.recipe import JobResources
from monkey_stacks.cloud.slot_capacity import MachineType, describe_type_shortage
from tests.unit.apply.small_project import SPEC, StillFleet, opened, write_project


@dataclass
class SizedFleet(StillFleet):
    """A fleet that knows its machines' size, or says that it does not, as hosts do."""

    gpus: int = 0

    def describe_shortage(self, asked: JobResources) -> str:
        if self.type == "ssh":
            return ""
        return describe_type_shortage([MachineType("a pilot", 8, 64 << 30, self.gpus)], asked)


@pytest.mark.parametrize(("type_", "gpus", "warns"), [("slurm", 1, True), ("slurm", 0, False), ("ssh", 0, False)])
def test_gpus_that_a_provider_is_known_to_have(tmp_path: Path, type_: str, gpus: int, warns: bool) -> None:
    async def plan() -> tuple[str, ...]:
        async with opened(tmp_path, SizedFleet(type=type_, gpus=gpus)) as world:
            return (await make_plan(world, [])).plan.sweeps[0].notes

    write_project(tmp_path, f"{SPEC}resources: {{cpus: 1}}\n")
    told = "warning: specs/small.yaml:6: machines of local have GPUs, and no job asks for any, so jobs see none: "
    said = [note for note in asyncio.run(plan()) if "GPU" in note]
    assert said == [f"{told}write `gpus: 1` in `resources:`; or `gpus: 0`, if they need none"] * warns
