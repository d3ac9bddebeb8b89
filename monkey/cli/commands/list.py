"""`monkey list`: jobs, sweeps, providers, instances."""

from __future__ import annotations

import click

from monkey.apply.inspect.fleet_audit import open_derived_fleets
from monkey.apply.inspect.instances import list_instances
from monkey.apply.world.fleets import count_living_agents
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.cli.links.page_link import print_page_link
from monkey.cli.render.list_tables import (
    format_instances,
    format_jobs,
    format_providers,
    format_sweeps,
    serialize_instances,
    serialize_jobs,
    serialize_providers,
    serialize_sweeps,
)
from monkey.cli.render.status_lines import take_ended_checks
from monkey.cli.session import complete_sweep_names, json_option, print_pieces, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json, flatten_text, join_lines
from monkey.plan.text.credential_forms import mask_credentials
from monkey.protocol.status.agent_views import SweepView
from monkey.protocol.status.job_view import JobState
from monkey.results.export import format_json_rows


@click.group("list")
def list_command() -> None:
    """List jobs, sweeps, providers or instances."""


@list_command.command("jobs")
@click.argument("sweeps", nargs=-1, metavar="[SWEEP]...", shell_complete=complete_sweep_names)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in JobState]),
    help="Only jobs in this state.",
)
@json_option
def show_jobs(sweeps: tuple[str, ...], states: tuple[str, ...], as_json: bool) -> None:
    """List the jobs of SWEEPs (default: all sweeps) with their state and parameters."""

    async def read(world: World) -> tuple[World, list[SweepView]]:
        snapshot = await world.reader().read()
        return world, [find_sweep(snapshot, name) for name in sweeps] or list(snapshot.sweeps.values())

    world, views = run_in_world(read)
    # Outside of the event loop, where Ctrl-C ends whatever is being computed.
    if as_json:
        print_pieces(map(mask_credentials, format_json_rows(serialize_jobs(views, states), dump_json)))
    else:
        print_pieces(join_lines(format_jobs(views, states, detect_terminal())))
        print_page_link(world, [view.state.name for view in views])


@list_command.command("sweeps")
@json_option
def show_sweeps(as_json: bool) -> None:
    """List the sweeps that were applied."""

    async def show(world: World) -> None:
        snapshot = await world.reader().read()
        views = [view for view in snapshot.sweeps.values() if view.state.revision is not None]
        for view in snapshot.sweeps.values():
            for line in view.state.skipped.lines:
                click.echo(f"warning: {flatten_text(line)}", err=True)
        if as_json:
            click.echo(mask_credentials(dump_json(serialize_sweeps(views), indent=2)))
        else:
            shown, checks = take_ended_checks(views)
            click.echo("\n".join(format_sweeps(shown, detect_terminal()) + checks))
            print_page_link(world)

    run_in_world(show)


@list_command.command("providers")
@json_option
def show_providers(as_json: bool) -> None:
    """List the providers, and their living agents."""

    async def show(world: World) -> str:
        snapshot = await world.reader().read([]) if world.store is not None else None
        await open_derived_fleets(world)
        counted = [(fleet.name, fleet.type, count_living_agents(fleet, snapshot)) for fleet in world.fleets.values()]
        if as_json:
            return dump_json(serialize_providers(counted), indent=2)
        return "\n".join(format_providers(counted, detect_terminal()))

    click.echo(run_in_world(show))


@list_command.command("instances")
@json_option
def show_instances(as_json: bool) -> None:
    """List recorded machines, and the agents on them by their heartbeats."""

    async def show(world: World) -> str:
        found = await list_instances(world)
        return (
            dump_json(serialize_instances(found), indent=2)
            if as_json
            else "\n".join(format_instances(found, detect_terminal()))
        )

    click.echo(run_in_world(show))
