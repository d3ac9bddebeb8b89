"""How many pilots a fleet's work is worth, and what of it no pilot could do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from monkey.fleet.fleet_records import FleetWork
from monkey.spec.project.provider import Provider
from monkey.spec.yaml.units import format_duration
from monkey_stacks.cloud.slot_capacity import MachineType, count_needed_machines
from monkey_stacks.pilots.pilot_engine import Pilot, mark_image


def count_wanted_pilots(
    work: FleetWork, shape: MachineType, most: int, provider: Provider, *, by_image: bool
) -> Mapping[str, int]:
    """Return how many pilots are to be there: `most`, or as many as have room for all jobs at once.

    `by_image`: a pilot runs jobs of its own image alone, so the number is one for each image; else all are under "".
    """
    parts = work.images if by_image and work.images else {"": work.asked}
    limits = provider.max_slots, provider.resources
    jobs = {image: sum(count for _, count in asked) or work.jobs for image, asked in parts.items()}
    return {
        image: min(most, count_needed_machines([shape], jobs[image], asked, *limits)) for image, asked in parts.items()
    }


def warn_of_long_jobs(work: FleetWork, whole: float | None, leaving: float, where: str) -> Iterator[str]:
    """Yield warnings of jobs that do not fit the time of a pilot.

    A pilot has `whole` seconds, the last `leaving` of which it takes to leave. `where`: the provider's name.
    """
    if whole is None or not work.jobs:
        return
    usable = whole - leaving
    limits = [limit for limit in work.timeouts if limit is not None]
    if limits and max(limits) > usable:
        said = f"jobs of up to {format_duration(max(limits))} do not fit pilots of {format_duration(whole)}"
        left = format_duration(max(1, round(usable)))
        yield f"warning: {said}, which work for {left}: none claims them. Raise `time` of {where}, or lower `timeout`"
    if None in work.timeouts:
        said = f"a job that runs longer than {format_duration(max(1, round(usable)))} is released with its pilot"
        yield f"{said}; without checkpoints it begins anew, and fails the second time"


def list_missing_images(wanted: Mapping[str, int], there: Sequence[Pilot]) -> list[str]:
    """Return the image of each pilot that is missing; "" for one of jobs without an image."""
    lives = Counter(pilot.image for pilot in there)
    missing = {image: max(0, count - lives[mark_image(image)]) for image, count in wanted.items()}
    return [image for image, count in missing.items() for _ in range(count)]
