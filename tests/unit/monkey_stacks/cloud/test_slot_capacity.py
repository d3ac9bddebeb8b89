"""How many machines of a cloud jobs need, and what none of them can run."""

from __future__ import annotations

import pytest

from monkey.spec.job.recipe import JobResources
from monkey_stacks.cloud.slot_capacity import (
    Asked,
    MachineType,
    count_needed_machines,
    describe_misfits,
    describe_type_shortage,
)

GIB = 1 << 30
SMALL = MachineType("g4dn.xlarge", 4, 16 * GIB, 1)
LARGE = MachineType("g5.12xlarge", 48, 192 * GIB, 4)
CPU = MachineType("c7i.large", 2, 4 * GIB)


@pytest.mark.parametrize(
    ("types", "jobs", "asked", "max_slots", "machines"),
    [
        ((SMALL,), 0, (), None, 0),
        ((SMALL,), 1, (), None, 1),
        ((SMALL,), 9, ((JobResources(), 9),), None, 3),
        ((SMALL,), 9, ((JobResources(), 9),), 2, 5),
        ((SMALL,), 3, ((JobResources(gpus=1), 3),), None, 3),
        ((SMALL,), 8, ((JobResources(cpus=0.1, gpus=0.25), 8),), None, 2),
        ((LARGE,), 9, ((JobResources(gpus=0.4), 9),), None, 2),  # two on each of four, not ten in all
        ((SMALL,), 3, ((JobResources(memory=8 * GIB), 3),), None, 3),  # not two: the kernel has some of it
        ((SMALL, LARGE), 8, ((JobResources(gpus=1), 8),), None, 8),  # the smallest counts
        ((SMALL, LARGE), 8, ((JobResources(gpus=4), 8),), None, 8),  # of those that can
        ((SMALL,), 6, ((JobResources(gpus=1), 2), (JobResources(cpus=1), 4)), None, 3),
        ((SMALL,), 4, ((JobResources(cpus=0.01), 4),), None, 1),
        ((CPU,), 2, ((JobResources(gpus=1), 2),), None, 2),  # told elsewhere
    ],
)
def test_machines_for(
    types: tuple[MachineType, ...], jobs: int, asked: Asked, max_slots: int | None, machines: int
) -> None:
    assert count_needed_machines(types, jobs, asked, max_slots) == machines


def test_counted_resources_bound_the_jobs_of_a_machine() -> None:
    one, many = JobResources(0.1, counted=(("tpu", 1),)), JobResources(0.1, counted=(("tpu", 4),))
    has = (("tpu", 2),)
    assert count_needed_machines([SMALL], 8, [(one, 8)], None, has) == 4
    assert count_needed_machines([SMALL], 8, [(one, 8)], 1, has) == 8
    assert count_needed_machines([SMALL], 9, [(many, 8), (one, 1)], None, has) == 1, "others run the larger ones"
    assert count_needed_machines([SMALL], 8, [(many, 8)], None, has) == 0


def test_half_a_cpu_runs_one_job_that_asks_for_nothing() -> None:
    half = MachineType("half", 0.5, GIB)
    assert describe_type_shortage((half,), JobResources()) == ""
    assert (half.room(JobResources()), half.room(JobResources(0.25))) == (1, 2)
    assert describe_type_shortage((half,), JobResources(cpus=2)) == "2 CPUs (half has 0.5)"


def test_shortage_is_what_no_type_has() -> None:
    assert describe_type_shortage((SMALL, LARGE), JobResources(cpus=8, gpus=2)) == ""
    assert (
        describe_type_shortage((SMALL,), JobResources(cpus=8, gpus=2))
        == "8 CPUs (g4dn.xlarge has 4), 2 GPUs (g4dn.xlarge has 1)"
    )
    said = "16.0 GiB of memory (g4dn.xlarge has about 15.0)"
    assert describe_type_shortage((SMALL,), JobResources(memory=16 * GIB)) == said
    assert (
        describe_type_shortage((SMALL, CPU), JobResources(gpus=8))
        == "8 GPUs (g4dn.xlarge has 1); 8 GPUs (c7i.large has 0)"
    )


def test_types_that_come_for_nothing_are_told() -> None:
    asked = ((JobResources(gpus=1), 5), (JobResources(gpus=9), 5))
    some = ["warning: some machines may come for nothing, for a job asks for 1 GPU (c7i.large has 0)"]
    assert (
        describe_misfits((SMALL, CPU), asked, in_order=True)
        == describe_misfits((CPU, SMALL), asked, in_order=False)
        == some
    )
    assert describe_misfits((CPU, SMALL, LARGE), asked, in_order=True) == [
        "warning: on demand the first of the types is taken, and c7i.large can run none of the jobs: "
        "write g4dn.xlarge before it"
    ]
    assert describe_misfits((SMALL, LARGE), ((JobResources(), 1),), in_order=True) == []
