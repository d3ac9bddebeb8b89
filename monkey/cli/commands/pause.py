"""`monkey pause`."""

from __future__ import annotations

import click

from monkey.apply.orders import pause_sweep
from monkey.cli.order_reports import report_order
from monkey.cli.session import complete_sweep_names, run_in_world


@click.command("pause")
@click.argument("sweep", shell_complete=complete_sweep_names)
def pause_command(sweep: str) -> None:
    """Pause SWEEP until it is resumed: running jobs stop and keep their checkpoints, queued jobs wait."""
    done = run_in_world(lambda world: pause_sweep(world, sweep))
    report_order(done, "pause", "paused", f"`monkey resume {sweep}` goes on")
