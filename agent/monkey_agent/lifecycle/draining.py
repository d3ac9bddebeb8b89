"""Leaving without haste: an agent that is replaced takes no new claim, and goes when its jobs have ended.

Who replaces it leaves a file in its directory: unlike a signal, that is still there for an agent that just begins.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from monkey_agent.scheduling.agent_daemon import AgentDaemon

#: The file, in the agent's directory.
_DRAIN_FILE = "drain"
#: Seconds between looks.
_POLL_SECONDS = 1.0


async def drain_on_request(agent: AgentDaemon, directory: Path) -> None:
    """Have the agent of this directory drain once the file is there, and leave when nothing is in its hands."""
    while not (directory / _DRAIN_FILE).exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(_POLL_SECONDS)
    agent.dispatcher.close()
    await asyncio.sleep(_POLL_SECONDS)  # a claim that is just being made comes into its hands, or is dropped
    while agent.attempts.in_hand:  # noqa: ASYNC110 - once in an agent's life
        await asyncio.sleep(_POLL_SECONDS / 4)
    agent.stop(replaced=True)
