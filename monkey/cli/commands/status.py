"""`monkey status`: how sweeps, agents and the store are doing."""

from __future__ import annotations

from dataclasses import replace

import click

from monkey.apply.inspect.misplaced_objects import list_misplaced
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.cli.exit_codes import INTERRUPTED
from monkey.cli.links.page_link import print_page_link
from monkey.cli.render.status_lines import format_status, serialize_status, take_ended_checks
from monkey.cli.session import complete_sweep_names, json_option, project_file_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json
from monkey.plan.text.credential_forms import mask_credentials
from monkey.protocol.status.sync_beat import read_sync_beats
from monkey.store.directory.store import DirectoryStore


@click.command("status")
@click.argument("sweeps", nargs=-1, metavar="[SWEEP]...", shell_complete=complete_sweep_names)
@click.option("-w", "--watch", is_flag=True, help="Watch until no job is running or queued, as apply does.")
@json_option
@project_file_option
def status_command(sweeps: tuple[str, ...], watch: bool, as_json: bool) -> int:
    """Show the state of SWEEPs (default: all), their agents, and what needs attention."""
    try:
        return run_in_world(lambda world: _status(world, sweeps, watch=watch, as_json=as_json))
    except KeyboardInterrupt:  # how one leaves; there is nothing to say
        return INTERRUPTED


async def _status(world: World, sweeps: tuple[str, ...], *, watch: bool, as_json: bool) -> int:
    snapshot = await world.reader().read()
    views = [find_sweep(snapshot, name) for name in sweeps] or [
        view for view in snapshot.sweeps.values() if view.state.revision is not None
    ]
    if watch:
        from monkey.cli.watching import watch_to_end

        print_page_link(world, [view.state.name for view in views])
        return await watch_to_end(world, [view.state.name for view in views])
    boots = await world.boots()
    syncs, unreadable = await read_sync_beats(world.at, world.keys)
    store = world.store
    misplaced = await list_misplaced(store, world.keys, quick=True) if isinstance(store, DirectoryStore) else []
    snapshot = replace(snapshot, problems=[*snapshot.problems, *unreadable, *misplaced])
    if as_json:
        told = dump_json(serialize_status(world.at.url, snapshot, views, boots, syncs), indent=2)
        click.echo(mask_credentials(told))
    else:
        to = detect_terminal()
        shown, checks = (views, []) if sweeps else take_ended_checks(views)
        lines = format_status(world.at.url, snapshot, shown, to, boots, world.rented, syncs, world.queued)
        click.echo("\n".join(lines + checks))
        print_page_link(world, [view.state.name for view in views])
    return 0
