"""The end of sweeps whose spec is gone: an ordinary cancellation, which says from which commit on it is."""

from __future__ import annotations

from collections.abc import Callable

from monkey.apply.history.authorship import stamp_entry
from monkey.apply.world.world import World
from monkey.plan.change import Plan
from monkey.plan.observed import PRUNED
from monkey.protocol.sweeps.sweep_log import append_order


async def cancel_gone_sweeps(world: World, plan: Plan, say: Callable[[str, str], None]) -> None:
    """Cancel the sweeps that the plan prunes, and report each to `say`.

    Raises ConcurrentApply where one was applied again meanwhile, SigningError, StoreError.
    """
    git = next((sweep.desired.git for sweep in plan.sweeps if sweep.desired.git), None) or {}
    reason = f"{PRUNED} (commit {str(git.get('commit', 'unknown'))[:10]})"
    for gone in plan.gone:
        if gone.pruned:
            await append_order(
                *(world.at, world.keys, world.signers, gone.name, "cancel"),
                reason=reason,
                stamp=stamp_entry(),
                revision=gone.revision,
            )
            say(gone.name, "cancelled, as its spec is gone")
