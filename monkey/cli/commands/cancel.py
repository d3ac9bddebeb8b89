"""`monkey cancel`."""

from __future__ import annotations

import click

from monkey.apply.orders import cancel_sweep
from monkey.apply.previews import end_preview
from monkey.cli.order_reports import report_order
from monkey.cli.session import complete_sweep_names, run_in_world

_RESUME = "`monkey resume {}` would go on after all"


@click.command("cancel")
@click.argument("sweep", shell_complete=complete_sweep_names, required=False)
@click.option("-m", "--reason", default="", metavar="TEXT", help="Record a reason, shown by `monkey info`.")
@click.option(
    "--preview", type=int, metavar="NUMBER", help="Cancel all previews of this pull request, as it is closed."
)
def cancel_command(sweep: str | None, reason: str, preview: int | None) -> None:
    """Cancel SWEEP: running jobs are stopped, queued jobs never start. Finished jobs keep their results."""
    if sweep is not None and preview is None:
        done = run_in_world(lambda world: cancel_sweep(world, sweep, reason))
        report_order(done, "cancel", "cancelled", _RESUME.format(sweep))
        return
    if preview is None or sweep is not None:
        raise click.UsageError("expected SWEEP, or --preview NUMBER")
    ended = run_in_world(lambda world: end_preview(world, preview, reason))
    for one in ended:
        name = one.view.state.name
        report_order(one, "cancel", "cancelled", _RESUME.format(name))
    if not ended:
        click.echo(f"No preview of pull request {preview} has jobs left; nothing to cancel.")
