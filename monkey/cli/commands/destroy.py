"""`monkey destroy`: take machines away."""

from __future__ import annotations

import sys
from functools import partial

import click

from monkey.apply.inspect.fleet_audit import find_forgotten_fleets, open_derived_fleets
from monkey.apply.world.world import World
from monkey.cli.session import run_in_world
from monkey.cli.terminal.prompts import ask_consent
from monkey.errors import FleetError, MonkeyError
from monkey.fleet.fleet_port import Fleet
from monkey.fleet.fleet_records import Instance


@click.command("destroy")
@click.option(
    "--fleet", "names", multiple=True, metavar="NAME", help="Remove only this provider's machines; may be repeated."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before removing them.")
def destroy_command(names: tuple[str, ...], yes: bool) -> int:
    """Remove all machines of this project, their agents, and everything that was set up for them.

    Running jobs are stopped and queued again for other machines. The store keeps everything. Machines of providers that
    monkey.yaml no longer names are removed, too.
    """
    return run_in_world(lambda world: _destroy(world, names, yes))


async def _destroy(world: World, names: tuple[str, ...], yes: bool) -> int:
    await open_derived_fleets(world)
    named = {name: world.fleets[name] for name in names if name in world.fleets}
    world.fleets = known = {**world.fleets, **named, **await find_forgotten_fleets(world)}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise FleetError(f"expected a provider ({', '.join(sorted(known))}), found {wrong[0]!r}")
    there = {name: await fleet.instances() for name, fleet in known.items() if not names or name in names}
    there = {name: instances for name, instances in there.items() if instances}
    if not there:
        click.echo("There are no machines to take away.")
        return 0
    await _confirm(world, there, yes)
    return await _each([known[name] for name in there])


async def _each(fleets: list[Fleet]) -> int:
    """Destroy one after another; one that fails does not keep the others."""
    failed = []
    for fleet in fleets:
        try:
            await fleet.destroy(partial(_say, fleet.name))
        except FleetError as exc:
            failed.append(exc)
            said = exc.message.removeprefix(f"provider {fleet.name!r}: ")
            click.echo(f"{fleet.name}: {said}", err=True)
    if failed:
        raise FleetError("not everything could be taken away", hint=failed[0].hint or "mend it, and destroy again")
    return 0


def _say(fleet: str, text: str) -> None:
    click.echo(f"{fleet}: {text}")


async def _confirm(world: World, there: dict[str, tuple[Instance, ...]], yes: bool) -> None:
    """Say what goes, and ask: running jobs lose what they did since their last checkpoint."""
    for name, instances in there.items():
        for instance in instances:
            click.echo(f"- {name}/{instance.machine}" + (f" ({instance.about})" if instance.about else ""))
    snapshot = await world.reader().read()
    running = sum(agent.jobs for agent in snapshot.agents if agent.alive and agent.fleet in there)
    stops = f" {running} running job{'s' * (running != 1)} will be stopped and queued again." if running else ""
    if yes:
        return
    if not sys.stdin.isatty():
        raise MonkeyError(f"nothing was taken away.{stops}", hint="--yes agrees to it")
    if not ask_consent(f"Take these away?{stops}"):
        raise MonkeyError("nothing was taken away")
