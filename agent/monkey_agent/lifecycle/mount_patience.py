"""The patience of an agent on a rented machine with mounts that are missing: it costs money, and runs no job."""

from __future__ import annotations

from monkey.errors import MachineUnfit
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.slots.mount_guard import MountGuard

#: Seconds for which a rented machine may lack a mount, and run no job. Meanwhile, root mounts again.
MOUNT_PATIENCE = 600.0
#: Seconds between looks at its mounts.
_PAUSE_SECONDS = 5.0


async def leave_unmounted(agent: AgentDaemon, guard: MountGuard) -> None:
    """Have the agent leave, as unfit, once a mount has been missing for long and no job runs. Return then."""
    began: float | None = None
    while True:
        missing, now = guard.missing, agent.clock.now()
        if not missing or agent.attempts.in_hand:
            began = None
        elif began is None:
            began = now
        elif now - began > MOUNT_PATIENCE:
            break
        await agent.clock.sleep(_PAUSE_SECONDS)
    agent.refuse_machine(
        MachineUnfit(
            f"no job began for {MOUNT_PATIENCE / 60:.0f} minutes: {missing}",
            hint="mend it in `mounts:` of the provider, in its machines' image or on the server; then apply again",
        )
    )
