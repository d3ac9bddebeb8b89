"""What a forecast says besides changes of resources: the machines that end, and warnings of the group."""

from __future__ import annotations

import time
from collections.abc import Sequence

from monkey.fleet.fleet_records import FleetWork
from monkey.fleet.machine_capacity import MEMORY_BY_KERNEL, describe_memory_limits
from monkey.plan.cost import MachineChange
from monkey_stacks.cloud import cloud_descriptions as words
from monkey_stacks.cloud.cloud_api import CloudApi
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan

#: Seconds before its end at which a group is no longer given machines.
LAST_SECONDS = 60.0


def describe_endings(
    plan: ScalingPlan, wanted: words.CloudFleetPlan, type_key: str, parts: Sequence[MachineChange]
) -> list[MachineChange]:
    """Return which machines end, and why; `parts`: the changes of the resources they are made from."""
    replaced = [words.describe_outdated(each, wanted, type_key, parts) for each in plan.outdated]
    return [*replaced, *(words.describe_surplus(each, plan.after, wanted.max_instances) for each in plan.surplus)]


def warn_of_group(api: CloudApi, work: FleetWork, there: MachineGroup | None, orphans: Sequence[str]) -> list[str]:
    """Return notes: who holds memory, the work has expired, resources are unrecorded, machines did not come.

    Raises FleetError.
    """
    found = describe_memory_limits(work.asked, {} if there and there.desired else {"machines": MEMORY_BY_KERNEL})
    if work.expires is not None and work.expires < time.time() + LAST_SECONDS:
        found.append("warning: its sweeps have expired: no machine is made; `monkey extend SWEEP 6h` goes on")
    if orphans:
        what = f"{api.called} has what no apply has written down: {words.join_names(orphans)}"
        found.append(f"warning: {what}; applying takes it away")
    if there is not None and there.desired > len(there.members):
        why, _ = api.explain_trouble()
        found += [f"warning: {there.desired - len(there.members)} machines have not come: {why}"] if why else []
    return found
