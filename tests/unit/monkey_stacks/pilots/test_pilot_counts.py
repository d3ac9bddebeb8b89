"""How many pilots work is worth, when they leave, and what is said of jobs that do not fit."""

from __future__ import annotations

import pytest

from monkey.fleet.fleet_records import FleetWork
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.provider import Provider
from monkey_stacks.cloud.slot_capacity import MachineType, describe_type_shortage
from monkey_stacks.pilots.leaving_time import count_leaving_seconds, count_reminder_seconds
from monkey_stacks.pilots.pilot_counts import count_wanted_pilots, list_missing_images, warn_of_long_jobs
from monkey_stacks.pilots.pilot_engine import Pilot

SHAPE = MachineType("a pilot", 8, 32 << 30, 2, share=1.0)


def work(jobs: int, **asked: int) -> FleetWork:
    return FleetWork(jobs, asked=((JobResources(**asked), jobs),) if jobs else ())


@pytest.mark.parametrize(
    ("of", "most", "slots", "wanted"),
    [
        (work(0), 8, None, 0),
        (work(6), 8, None, 1),
        (work(9), 8, None, 2),
        (work(100), 8, None, 8),
        (work(6), 8, 2, 3),
        (work(4, gpus=1), 8, None, 2),
        (work(3, memory=32 << 30), 8, None, 3),
        (work(2, cpus=64), 8, None, 2),
    ],
)
def test_as_many_pilots_as_have_room_for_all_jobs(of: FleetWork, most: int, slots: int | None, wanted: int) -> None:
    assert count_wanted_pilots(of, SHAPE, most, Provider("slurm", slots), by_image=False) == {"": wanted}


def test_each_image_has_pilots_of_its_own_where_a_pod_is_the_image() -> None:
    image = f"docker.io/library/python@sha256:{'a' * 64}"
    plain, inside = ((JobResources(), 9),), ((JobResources(gpus=1), 4),)
    both = FleetWork(13, asked=(*plain, *inside), images={"": plain, image: inside})
    wanted = count_wanted_pilots(both, SHAPE, 8, Provider("kubernetes"), by_image=True)
    assert wanted == {"": 2, image: 2}
    there = [Pilot("p-0", "on n1"), Pilot("p-a-0", "on n2", image="a" * 8), Pilot("p-b-0", "on n2", image="b" * 8)]
    assert list_missing_images(wanted, there) == ["", image]
    assert list_missing_images({"": 1, image: 1}, there) == []


def test_a_pilot_has_all_the_memory_that_was_asked_for() -> None:
    assert describe_type_shortage([SHAPE], JobResources(memory=32 << 30)) == ""
    assert describe_type_shortage([SHAPE], JobResources(cpus=64)) == "64 CPUs (a pilot has 8)"


@pytest.mark.parametrize("whole", [120.0, 300.0, 899.0, 900.0, 3600.0, 86400.0])
@pytest.mark.parametrize("grace", [0.0, 10.0, 60.0])
def test_a_pilot_leaves_before_it_is_reminded_and_is_reminded_before_its_end(whole: float, grace: float) -> None:
    leaving, reminder = count_leaving_seconds(whole, grace), count_reminder_seconds(whole, grace)
    assert 0 < leaving < whole / 2 - 10
    assert reminder == 0 or grace + 30 <= reminder - 30 < reminder + 30 < leaving, "the engine's clock is 30 s off"
    assert (reminder == 0) == (whole < 900)


def test_jobs_that_do_not_fit_are_told() -> None:
    def told(*limits: float | None) -> list[str]:
        return list(warn_of_long_jobs(FleetWork(1, timeouts=frozenset(limits)), 4 * 3600, 180, "lab"))

    assert told(3600) == []
    assert "jobs of up to 6h do not fit pilots of 4h, which work for 3h57m" in told(6 * 3600)[0]
    assert "runs longer than 3h57m is released with its pilot" in told(None)[0]
    assert list(warn_of_long_jobs(FleetWork(0, timeouts=frozenset([1e9])), 3600, 180, "lab")) == []
    assert list(warn_of_long_jobs(FleetWork(1, timeouts=frozenset([1e9])), None, 180, "lab")) == []
