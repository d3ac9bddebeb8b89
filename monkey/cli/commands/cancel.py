"""`monkey cancel`."""

from __future__ import annotations

import click

from monkey.apply.orders import cancel_sweep
from monkey.cli.order_reports import report_order
from monkey.cli.session import complete_sweep_names, run_in_world


@click.command("cancel")
@click.argument("sweep", shell_complete=complete_sweep_names)
@click.option("-m", "--reason", default="", metavar="TEXT", help="Record a reason, shown by `monkey info`.")
def cancel_command(sweep: str, reason: str) -> None:
    """Cancel SWEEP: running jobs are stopped, queued jobs never start. Finished jobs keep their results."""
    done = run_in_world(lambda world: cancel_sweep(world, sweep, reason))
    report_order(done, "cancel", "cancelled", f"`monkey resume {sweep}` would go on after all")
