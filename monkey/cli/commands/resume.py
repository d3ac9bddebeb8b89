"""`monkey resume`."""

from __future__ import annotations

import click

from monkey.apply.orders import OrderOutcome, resume_sweep
from monkey.apply.world.sweep_status import judge_standing
from monkey.cli.order_reports import print_order, report_order
from monkey.cli.rent_prompt import make_rent_prompt, yes_option
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.plan.advice import suggest_extension, suggest_retry


@click.command("resume")
@click.argument("sweep", shell_complete=complete_sweep_names)
@yes_option
def resume_command(sweep: str, yes: bool) -> None:
    """Resume SWEEP after a pause or a cancellation."""
    done = run_in_world(lambda world: resume_sweep(world, sweep, make_rent_prompt(yes=yes), print_order))
    report_order(done, "resume", "goes on", _then(done))


def _then(done: OrderOutcome) -> str:
    """Return what may be done next; where jobs failed, that they are not tried again by this."""
    at = judge_standing(done.view)
    if at.over:
        return f"Its time is over: {suggest_extension(at.name)}"
    watch = f"`monkey status -w {at.name}` watches"
    if not at.failed:
        return watch
    anew = ", and the next failure cancels it anew" if at.fail_fast else ""
    return f"{watch}. What failed stays so{anew}; {suggest_retry(at)}"
