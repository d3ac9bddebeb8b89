"""`monkey audit`: what machines really have, against what we know of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monkey.cli.session import in_world, json_option

if TYPE_CHECKING:
    from monkey.apply.observe import World


@click.command("audit")
@json_option
def command(as_json: bool) -> int:
    """Ask every machine what is there, and compare it with what was written down.

    Exits with 1 where anything is left over, missing, or could not be looked at; 0 says that nothing is astray.
    """
    return in_world(lambda world: _audit(world, as_json))


async def _audit(world: World, as_json: bool) -> int:
    from monkey.apply.fleets import audit
    from monkey.cli.render.lists import findings_json, findings_lines
    from monkey.cli.render.words import json_text, terminal

    found = await audit(world)
    if as_json:
        click.echo(json_text(findings_json(found), indent=2))
    else:
        click.echo("\n".join(findings_lines(found, terminal())))
    return 1 if found else 0
