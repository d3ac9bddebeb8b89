"""The agent on a rented machine: its record of heartbeats, the cloud's notices, and the secrets that it may read.

Rented machines end themselves. The process that watches over one (`monkey_stacks/boot/remote`) reads in the agent's
directory when its last heartbeat was acknowledged, and why it left.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.errors import FleetError
from monkey.fleet.cloud import instance_metadata
from monkey.fleet.cloud.aws_machine import AwsMachine
from monkey.fleet.cloud.gcp_machine import GcpMachine
from monkey.fleet.cloud.http_client import ApiDown, ApiError, retry_ask
from monkey.fleet.cloud.machine_paths import GOODBYE, HEARD
from monkey_agent.lifecycle import draining
from monkey_agent.scheduling.agent_daemon import AgentDaemon

CLOUDS: Mapping[str, type[AwsMachine] | type[GcpMachine]] = {"aws": AwsMachine, "gcp": GcpMachine}
#: Seconds between questions whether the machine is about to be taken back, and between looks at the heartbeat.
ASK, _POLL_SECONDS = 2.0, 5.0
#: Seconds that a cloud leaves after its notice; and the part of them that jobs may take to end: their results must
#: still be sent after that.
NOTICE: Mapping[str, float] = {"aws": 120.0, "gcp": 30.0}
_SHARE = 0.25
#: Seconds of retries, for a role whose rights are not known everywhere in the cloud yet.
LATE = 60.0


async def record_heartbeats(agent: AgentDaemon, directory: Path) -> None:
    """Record, in the agent's directory, when the last heartbeat that the store acknowledged began; never return."""
    written = 0.0
    while True:
        heard = agent.heart.acknowledged
        if heard > written:
            with contextlib.suppress(OSError):  # a full disk: then nobody is heard, which is told, and it ends
                write_atomically(directory / HEARD, f"{heard:.3f}")
                written = heard
        await asyncio.sleep(_POLL_SECONDS if written else _POLL_SECONDS / 10)


async def leave_on_notice(
    agent: AgentDaemon, cloud: str, directory: Path, limit_grace: Callable[[float], None]
) -> None:
    """Stop the agent when the cloud announces that it takes the machine back; drain it when the cloud may do so.

    `limit_grace` receives the seconds that jobs then have to end. Returns once the agent was asked to stop.
    """
    machine, known = CLOUDS[cloud]({}), ""
    while True:
        found = ""
        with contextlib.suppress(ApiError, ApiDown):  # asked again in a moment
            found = await asyncio.to_thread(instance_metadata.read_notice, machine)
        if found in (instance_metadata.SPOT, instance_metadata.OVER):
            limit_grace(read_grace(cloud))
            _depart(agent, directory, found)
            agent.stop(found)
            if found == instance_metadata.OVER:
                await _renew(machine)
            return
        if found and not known:
            known = found
            _depart(agent, directory, found)
            write_atomically(directory / draining._DRAIN_FILE, b"")
        await asyncio.sleep(ASK)


async def _renew(machine: AwsMachine | GcpMachine) -> None:
    """Replace this machine, as its time is over: unlike a machine that is taken back, it still has minutes for this."""
    with contextlib.suppress(ApiError, ApiDown):  # then its work waits for the next apply
        await asyncio.to_thread(retry_ask, partial(instance_metadata.replace_machine, machine), LATE)


def read_grace(cloud: str) -> float:
    """Return the seconds that jobs have to end when the cloud takes their machine back."""
    return NOTICE[cloud] * _SHARE


def _depart(agent: AgentDaemon, directory: Path, why: str) -> None:
    """Record why the agent leaves, since another machine is to replace this one."""
    may = "may be" if why == instance_metadata.REBALANCE else "is"
    agent.errors.say(f"{why}: this machine {may} taken away")
    write_atomically(directory / GOODBYE, why)


def read_secrets(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of the secrets that the settings name, read by the machine's role. Raises FleetError."""
    machine, found = CLOUDS[settings["cloud"]](settings), dict[str, str]()
    for name, where in settings["secrets"].items():
        try:
            found[name] = retry_ask(partial(instance_metadata.read_secret, machine, where), LATE)
        except (ApiError, ApiDown) as exc:
            raise FleetError(
                f"the machine cannot read the secret {name} at {where}: {exc}",
                hint=f"write it there, or mend {name} in the provider's 'secrets:'; then apply again",
            ) from None
        if not found[name] or "\0" in found[name]:
            raise FleetError(f"the secret {name} at {where} is empty, or no text", hint="write it there")
    return found
