"""`monkey pause`."""

from __future__ import annotations

import click

from monkey.apply.orders import pause
from monkey.cli.order_reports import report
from monkey.cli.session import in_world, names_complete


@click.command("pause")
@click.argument("sweep", shell_complete=names_complete)
def command(sweep: str) -> None:
    """Stop SWEEP until it is resumed: what runs is stopped (its checkpoints stay), what is queued waits."""
    done = in_world(lambda world: pause(world, sweep))
    report(done, "pause", "paused", f"`monkey resume {sweep}` goes on")
