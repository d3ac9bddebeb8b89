"""`monkey audit`: what machines really have, against what we know of."""

from __future__ import annotations

import click

from monkey.apply.inspect.fleet_audit import audit_fleets, find_foreign_resources, list_tagged_resources
from monkey.apply.world.world import World
from monkey.cli.render.list_tables import findings_json, findings_lines, holdings_json, holdings_lines
from monkey.cli.session import in_world, json_option
from monkey.cli.terminal.text import detect_terminal, json_text


@click.command("audit")
@json_option
def audit_command(as_json: bool) -> int:
    """Compare what exists on machines and in clouds with what monkey recorded.

    Lists cloud resources with this project's tags by region, with their price per hour. Exits with 1 if anything is
    left over, missing or unreachable, else with 0.
    """
    return in_world(lambda world: _audit(world, as_json))


async def _audit(world: World, as_json: bool) -> int:
    found, held = await audit_fleets(world), await list_tagged_resources(world)
    found += find_foreign_resources(held)
    if as_json:
        click.echo(json_text({"findings": findings_json(found), "holdings": holdings_json(held)}, indent=2))
    else:
        click.echo("\n".join([*holdings_lines(held, detect_terminal()), *findings_lines(found, detect_terminal())]))
    return 1 if found else 0
