"""`monkey extend`."""

from __future__ import annotations

import click

from monkey.apply.orders import extend_sweep
from monkey.apply.world.sweep_status import judge_standing
from monkey.cli.order_reports import print_order, report_order
from monkey.cli.rent_prompt import make_rent_prompt, yes_option
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.cli.terminal.text import flatten_text
from monkey.errors import MonkeyError
from monkey.plan.advice import suggest_next_step
from monkey.spec.job.expires import format_utc_time, parse_expiry
from monkey.spec.yaml.mistakes import MistakesError


@click.command("extend")
@click.argument("sweep", shell_complete=complete_sweep_names)
@click.argument("time", metavar="TIME")
@yes_option
def extend_command(sweep: str, time: str, yes: bool) -> None:
    """Extend SWEEP by TIME (6h), or until a time with its zone (2026-12-01T18:00:00Z).

    For a sweep that has already expired, TIME counts from now.
    """
    from dataclasses import replace

    try:
        asked = parse_expiry(
            time, 'say by how much later, like 6h, or a time with its zone, like "2026-12-01T18:00:00Z"'
        )
    except MistakesError as exc:
        raise MonkeyError(exc.mistakes[0].message, hint=exc.mistakes[0].hint) from exc
    done, until = run_in_world(lambda world: extend_sweep(world, sweep, asked, make_rent_prompt(yes=yes), print_order))
    if until is None:
        click.echo(
            f"{flatten_text(sweep)}: it never expires; nothing to extend. `expires:` in its spec says when it does."
        )
        return
    then = flatten_text(suggest_next_step(replace(judge_standing(done.view), over=False)))
    report_order(done, "extend", f"expires at {format_utc_time(until)}", then)
