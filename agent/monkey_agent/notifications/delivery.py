"""Delivering a notice by its channel. Slow to import: it speaks HTTP, and knows what reports look like."""

from __future__ import annotations

from monkey.fleet.secret_values import SecretValues
from monkey.protocol.notices.sweep_notices import Notice
from monkey.spec.project.notify_channel import NotifyChannel
from monkey_agent.notifications.forge_post import publish_notice
from monkey_agent.notifications.webhook import deliver_notice
from monkey_agent.scheduling.agent_context import AgentContext


async def send_notice(at: AgentContext, channel: NotifyChannel, notice: Notice) -> None:
    """Send a notice to its channel, with the secrets of this machine. Raises UndeliveredNotice."""
    if channel.kind == "forge":
        await publish_notice(at, channel, notice, SecretValues())
    else:
        await deliver_notice(channel, notice, SecretValues())
