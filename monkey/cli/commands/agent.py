"""`monkey agent`: the same as `monkey-agent`."""

from __future__ import annotations

import os
import sys

import click


@click.command("agent", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def agent_command(arguments: tuple[str, ...]) -> None:
    """Run an agent in the foreground until the store has no work for it."""
    sys.stdout.flush()
    # Its own process, not an import: an agent must not carry click and what else came with us.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "monkey_agent.command_line", *arguments])
