"""`monkey retry`."""

from __future__ import annotations

import click

from monkey.apply.orders import retry_jobs
from monkey.cli.order_reports import print_order, report_order
from monkey.cli.rent_prompt import make_rent_prompt, yes_option
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.plan.advice import suggest_extension
from monkey.results.failure_kinds import select_failures


@click.command("retry")
@click.argument("sweep", shell_complete=complete_sweep_names)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--signature", metavar="ID", help="Retry all jobs that failed alike, by the signature `status` shows.")
@click.option("--stopped", is_flag=True, help="Also retry all jobs that met a condition of stop_when.")
@yes_option
def retry_command(sweep: str, jobs: tuple[str, ...], signature: str | None, stopped: bool, yes: bool) -> None:
    """Run failed or stopped JOBs of SWEEP again (default: all failed jobs), with a fresh count of attempts."""
    if signature is not None and (jobs or stopped):
        raise click.UsageError("--signature chooses jobs by itself: name no JOB beside it, nor --stopped")
    choose = None if signature is None else lambda view: select_failures(view, signature)
    agree = make_rent_prompt(yes=yes)
    done = run_in_world(
        lambda world: retry_jobs(world, sweep, jobs, choose=choose, stopped=stopped, agree=agree, say=print_order)
    )
    if done.view.over:
        report_order(done, "retry", "would try again", f"Its time is over: {suggest_extension(sweep)}")
    elif done.view.state.paused:
        report_order(done, "retry", "would try again", f"It is paused: `monkey resume {sweep}` goes on")
    else:
        report_order(done, "retry", "tries again", f"`monkey status -w {sweep}` watches")
