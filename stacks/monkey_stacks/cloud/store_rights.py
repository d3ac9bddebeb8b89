"""The keys that a rented machine may write in the store. Each cloud has its own words for them.

Rights list what agents write, and deny the rest. So a new kind of key needs a line here, or rented agents cannot write
it.
"""

from __future__ import annotations

from monkey.protocol.layout import Keys
from monkey.store.content.objects import DAMAGED


def list_own_keys(project: str, fleet: str) -> tuple[str, ...]:
    """Return the keys that a fleet's machine writes, overwrites and deletes; `*` stands for any text.

    `machines/` is not among them: its writer could make the next apply do anything. Heartbeats of other fleets are not,
    since they say who holds a job. Nor is what `apply` alone writes: adoptions, code, datasets.
    """
    keys = Keys(project)
    return (
        f"{keys.jobs}*",
        f"{keys.agents}{fleet}/*",
        f"{keys.shipments}{fleet}/*",
        f"{keys.boots}{fleet}/*",
        f"{keys.permits}*",
        f"{keys.notices}*",
        f"{keys.facts('')}*",
        keys.bell,
        f"{DAMAGED}*",
    )


def list_entry_keys(project: str, fleet: str) -> tuple[str, ...]:
    """Return the keys that a fleet's machine creates and never overwrites; `*` stands for any text.

    An agent appends to logs of stops what `fail_fast` and `stop_when` conclude, and hints to its own fleet that nothing
    is left. Sweeps' logs and markers are not among them: their writer decides what runs, on other fleets, too.
    """
    keys = Keys(project)
    return f"{keys.stops}*", f"{keys.idle_hints(fleet)}*"
