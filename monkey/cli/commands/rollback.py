"""`monkey rollback`: a sweep wants again what an earlier revision of it wanted."""

from __future__ import annotations

import click

from monkey.apply.agent_environment import renew_idle_agents
from monkey.apply.execute import execute_plan
from monkey.apply.history.rollback_plan import plan_rollback
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.world.world import World
from monkey.cli.order_reports import print_order
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.rent_prompt import ask_plan_consent
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.cli.terminal.text import detect_terminal, flatten_text


@click.command("rollback")
@click.argument("sweep", shell_complete=complete_sweep_names)
@click.argument("number", type=click.IntRange(min=1), required=False, metavar="[N]")
@click.option("-m", "--reason", default="", metavar="TEXT", help="Record a reason, shown by `monkey history`.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before stopping running jobs or renting machines.")
def rollback_command(sweep: str, number: int | None, reason: str, yes: bool) -> None:
    """Bring back what revision N of SWEEP wanted (default: the newest one that differs), as a new revision.

    It holds until a commit changes the spec: an apply of what was taken back is refused. Finished jobs are kept.
    """
    run_in_world(lambda world: _roll_back(world, sweep, number, reason, yes=yes), reports=True)


async def _roll_back(world: World, sweep: str, number: int | None, reason: str, *, yes: bool) -> None:
    for fleet in world.local_fleets:
        fleet.prepare()
    planned, chosen = await plan_rollback(world, sweep, number, reason)
    name = flatten_text(sweep)
    if not planned.plan.sweeps[0].revises:
        click.echo(f"{name}: it wants what revision {chosen} wanted; nothing to roll back.")
        return
    click.echo("\n".join([*format_plan(planned.plan, detect_terminal()), ""]))
    ask_plan_consent(planned.plan, yes=yes)
    await renew_idle_agents(world, planned.plan, print_order)
    await execute_plan(world, planned.plan, planned.wanted, print_order)
    await wait_for_agents(world.reader(), [world.fleet(part.fleet) for part in planned.plan.fleets if part.jobs])
    click.echo(
        f"{name}: rolled back to revision {chosen}. That holds until a commit changes the spec; "
        f"`monkey status -w {name}` watches."
    )
