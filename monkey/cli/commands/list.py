"""`monkey list`: jobs, sweeps, providers, instances."""

from __future__ import annotations

import click

from monkey.apply.inspect.instances import list_instances
from monkey.apply.world.fleets import count_living_agents
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.cli.render.list_tables import (
    instances_json,
    instances_lines,
    jobs_json,
    jobs_lines,
    providers_json,
    providers_lines,
    sweeps_json,
    sweeps_lines,
)
from monkey.cli.session import in_world, json_option, names_complete
from monkey.cli.terminal.text import detect_terminal, json_text, one_line
from monkey.protocol.status.agent_views import JobState


@click.group("list")
def list_command() -> None:
    """List jobs, sweeps, providers or instances."""


@list_command.command("jobs")
@click.argument("sweeps", nargs=-1, metavar="[SWEEP]...", shell_complete=names_complete)
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

    async def show(world: World) -> str:
        snapshot = await world.reader().read()
        views = [find_sweep(snapshot, name) for name in sweeps] or list(snapshot.sweeps.values())
        if as_json:
            return json_text(jobs_json(views, states), indent=1)
        return "\n".join(jobs_lines(views, states, detect_terminal()))

    click.echo(in_world(show))


@list_command.command("sweeps")
@json_option
def show_sweeps(as_json: bool) -> None:
    """List the sweeps that were applied."""

    async def show(world: World) -> str:
        snapshot = await world.reader().read()
        views = [view for view in snapshot.sweeps.values() if view.state.revision is not None]
        for view in snapshot.sweeps.values():
            if view.state.corrupt:
                click.echo(f"warning: {one_line(view.state.corrupt.message)}", err=True)
        return json_text(sweeps_json(views), indent=2) if as_json else "\n".join(sweeps_lines(views, detect_terminal()))

    click.echo(in_world(show))


@list_command.command("providers")
@json_option
def show_providers(as_json: bool) -> None:
    """List the providers, and their living agents."""

    async def show(world: World) -> str:
        snapshot = await world.reader().read([]) if world.store is not None else None
        counted = [(fleet.name, fleet.type, count_living_agents(fleet, snapshot)) for fleet in world.fleets.values()]
        if as_json:
            return json_text(providers_json(counted), indent=2)
        return "\n".join(providers_lines(counted, detect_terminal()))

    click.echo(in_world(show))


@list_command.command("instances")
@json_option
def show_instances(as_json: bool) -> None:
    """List recorded machines, and the agents on them by their heartbeats."""

    async def show(world: World) -> str:
        found = await list_instances(world)
        return (
            json_text(instances_json(found), indent=2)
            if as_json
            else "\n".join(instances_lines(found, detect_terminal()))
        )

    click.echo(in_world(show))
