"""Jobs that do not begin since other agents of this user hold the machine: what the agent says of them to people."""

from __future__ import annotations

from collections.abc import Collection

from monkey.fleet.machine_capacity import format_resources
from monkey.spec.job.recipe import JobResources, make_amounts
from monkey_agent.ports import Slot
from monkey_agent.slots.machine_agents import WAITS
from monkey_agent.slots.shared_machine import WaitingJob

#: Seconds that a job must have waited before its agent says so: agents that share a machine well take short turns.
_LONG = 3.0


def describe_held_up_jobs(waiting: Collection[WaitingJob], given: Collection[Slot], now: float) -> str:
    """Say which of the `waiting` jobs has waited longest, of those that wait for long now; "" for none.

    Of a job that asks for the same as one that has a slot (`given`), nothing is said: its turn comes.
    """
    late = [job for job in waiting if now - job.tried < WAITS and job.tried - job.since >= _LONG]
    late = [job for job in late if not any(_is_slot_for(job.resources, slot) for slot in given)]
    if not late:
        return ""
    asked = format_resources(min(late, key=lambda job: job.since).resources)
    return f"jobs wait for {asked}: jobs of your other projects or fleets hold this machine"


def _is_slot_for(asked: JobResources, slot: Slot) -> bool:
    """Return whether a job that asks for just this has the slot."""
    amounts = make_amounts(slot.cpus, slot.memory, slot.counted)
    return amounts == asked.amounts and len(slot.gpus) * slot.part == round(asked.gpus * 1000)
