"""`monkey logs`: what jobs wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monkey.cli.main import INTERRUPTED
from monkey.cli.session import in_world, names_complete
from monkey.cli.sink import Sink

if TYPE_CHECKING:
    from monkey.apply.observe import World


@click.command("logs")
@click.argument("what", metavar="JOB|SWEEP", shell_complete=names_complete)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job (or all of the sweep's) has ended.")
def command(what: str, follow: bool) -> int:
    """Show what JOB wrote to stdout and stderr, or what all jobs of SWEEP did, each line behind its job's id.

    In a pipe a job's log comes byte for byte; on a terminal what would steer it is left out.
    """
    try:
        return in_world(lambda world: _logs(world, what, follow=follow))
    except KeyboardInterrupt:  # how one leaves; there is nothing to say
        return INTERRUPTED


async def _logs(world: World, what: str, *, follow: bool) -> int:
    import asyncio
    from contextlib import nullcontext

    from monkey.apply.find import find
    from monkey.apply.logs import Follow
    from monkey.apply.wait import watching

    found = find(await world.reader().read(), what)
    jobs = [found.job] if found.job else found.view.ids
    sink = _sink(prefixed=len(jobs) > 1)
    logs = Follow(world, found.view.state.name, [found.job] if found.job else None, asyncio.sleep)
    async with watching(world.at, world.keys) if follow else nullcontext():
        async for job, data in logs.chunks(follow=follow):
            sink.write(job, data)
    sink.close()
    if not sink.anything:
        from monkey.cli.render.outcome import silence

        view = (await world.reader().read([found.view.state.name])).sweeps[found.view.state.name]
        click.echo("\n".join(silence(what, [view.view(job) for job in jobs])), err=True)
    return 0


def _sink(*, prefixed: bool) -> Sink:
    import sys

    return Sink(sys.stdout.buffer, prefixed=prefixed, raw=not sys.stdout.isatty())
