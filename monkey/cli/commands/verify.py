"""`monkey verify`: whether the store still holds what was recorded."""

from __future__ import annotations

import click

from monkey.apply.verify.verification import verify_results
from monkey.apply.world.lookup import find_sweep_or_job
from monkey.apply.world.world import World
from monkey.cli.render.evidence.verify_report import format_verification, serialize_verification
from monkey.cli.session import complete_sweep_names, json_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json


@click.command("verify")
@click.argument("what", metavar="SWEEP|JOB", shell_complete=complete_sweep_names)
@json_option
def verify_command(what: str, as_json: bool) -> int:
    """Check the code, data, outputs, facts and numbers of JOB, or of all jobs of SWEEP that have ended.

    Everything is read from the store, and compared with the digests that were recorded. Lists what is missing, cut
    short or altered. Exits with 1 if anything is, else with 0.
    """
    return run_in_world(lambda world: _verify(world, what, as_json=as_json))


async def _verify(world: World, what: str, *, as_json: bool) -> int:
    found = find_sweep_or_job(await world.reader().read(), what)
    result = await verify_results(world, found.view, found.job)
    name = found.view.state.name
    if as_json:
        click.echo(dump_json(serialize_verification(name, found.job, result), indent=1))
    else:
        click.echo("\n".join(format_verification(found.job or name, result, detect_terminal())))
    return 1 if result.wrong else 0
