"""`monkey audit`: what machines really have, against what we know of."""

from __future__ import annotations

import click

from monkey.apply.inspect.fleet_audit import audit_fleets, find_foreign_resources, list_tagged_resources
from monkey.apply.world.world import World
from monkey.cli.render.list_tables import format_findings, format_holdings, serialize_findings, serialize_holdings
from monkey.cli.session import json_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json


@click.command("audit")
@json_option
def audit_command(as_json: bool) -> int:
    """Compare what exists on machines and in clouds with what monkey recorded.

    Lists cloud resources with this project's tags by region, with their price per hour. Exits with 1 if anything is
    left over, missing or unreachable, else with 0.
    """
    return run_in_world(lambda world: _audit(world, as_json))


async def _audit(world: World, as_json: bool) -> int:
    found, held = await audit_fleets(world), await list_tagged_resources(world)
    found += find_foreign_resources(held)
    if as_json:
        click.echo(dump_json({"findings": serialize_findings(found), "holdings": serialize_holdings(held)}, indent=2))
    else:
        click.echo("\n".join([*format_holdings(held, detect_terminal()), *format_findings(found, detect_terminal())]))
    return 1 if found else 0
