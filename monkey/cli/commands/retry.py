"""`monkey retry`."""

from __future__ import annotations

import click

from monkey.apply.orders import retry
from monkey.cli.order_reports import report, say
from monkey.cli.rent_prompt import agreeing, yes_option
from monkey.cli.session import in_world, names_complete
from monkey.plan.advice import suggest_extension


@click.command("retry")
@click.argument("sweep", shell_complete=names_complete)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--stopped", is_flag=True, help="All that met a condition of stop_when, too.")
@yes_option
def command(sweep: str, jobs: tuple[str, ...], stopped: bool, yes: bool) -> None:
    """Give failed or stopped JOBs of SWEEP (default: all that failed) another chance, as if nothing had been."""
    done = in_world(lambda world: retry(world, sweep, jobs, stopped=stopped, agree=agreeing(yes=yes), say=say))
    if done.view.over:
        report(done, "retry", "would try again", f"Its time is over: {suggest_extension(sweep)}")
    elif done.view.state.paused:
        report(done, "retry", "would try again", f"It is paused: `monkey resume {sweep}` goes on")
    else:
        report(done, "retry", "tries again", f"`monkey status -w {sweep}` watches")
