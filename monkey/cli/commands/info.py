"""`monkey info`: all about one job or one sweep."""

from __future__ import annotations

from typing import Any

import click

from monkey.apply.inspect.attempt_records import find_owner, read_attempts
from monkey.apply.inspect.result_facts import read_result_facts
from monkey.apply.world.lookup import find_sweep_or_job
from monkey.apply.world.world import World
from monkey.cli.links.page_link import print_page_link
from monkey.cli.render import job_details as render
from monkey.cli.session import complete_sweep_names, json_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json
from monkey.plan.text.credential_forms import mask_credentials
from monkey.results.curves.curve_reader import CurveReader


@click.command("info")
@click.argument("what", metavar="JOB|SWEEP", shell_complete=complete_sweep_names)
@json_option
def info_command(what: str, as_json: bool) -> None:
    """Show the details of JOB (an id, or a prefix of one) or SWEEP."""
    run_in_world(lambda world: _info(world, what, as_json=as_json))


async def _info(world: World, what: str, *, as_json: bool) -> None:
    snapshot = await world.reader().read()
    found, grafana = find_sweep_or_job(snapshot, what), world.project.grafana
    if found.job is None:
        if as_json:
            _print_json(render.serialize_sweep_details(found.view))
        else:
            click.echo("\n".join(render.format_sweep_details(found.view, snapshot, detect_terminal(), grafana)))
            print_page_link(world, [found.view.state.name])
        return
    tries = await read_attempts(world, found.view, found.job)
    facts = await read_result_facts(world, tries)
    if as_json:
        _print_json(render.serialize_job_details(found.view, found.job, tries, facts))
        return
    where = world.keys, world.at.url, detect_terminal()
    curves = await CurveReader(world.at, world.keys).read(find_owner(found.view, found.job))
    click.echo("\n".join(render.format_job_details(found.view, found.job, tries, *where, facts, curves, grafana)))
    print_page_link(world, [found.view.state.name], found.job)


def _print_json(told: dict[str, Any]) -> None:
    click.echo(mask_credentials(dump_json(told, indent=2)))
