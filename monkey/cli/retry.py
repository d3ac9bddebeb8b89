"""`monkey retry`."""

from __future__ import annotations

import click

from monkey.cli.session import in_world, names_complete
from monkey.cli.steering import report


@click.command("retry")
@click.argument("sweep", shell_complete=names_complete)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--stopped", is_flag=True, help="All that met a condition of stop_when, too.")
def command(sweep: str, jobs: tuple[str, ...], stopped: bool) -> None:
    """Give failed or stopped JOBs of SWEEP (default: all that failed) another chance, as if nothing had been."""
    from monkey.apply.operate import retry

    done = in_world(lambda world: retry(world, sweep, jobs, stopped=stopped))
    if done.view.state.paused:
        report(done, "retry", "would try again", f"It is paused: `monkey resume {sweep}` goes on")
    else:
        report(done, "retry", "tries again", f"`monkey status -w {sweep}` watches")
