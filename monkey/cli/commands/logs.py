"""`monkey logs`: what jobs wrote."""

from __future__ import annotations

import click

from monkey.apply.inspect.attempt_records import find_attempt, read_attempts
from monkey.apply.inspect.log_reading import LogFollower
from monkey.apply.watch.watch_loop import announce_watcher
from monkey.apply.world.lookup import LookupResult, find_sweep_or_job
from monkey.apply.world.world import World
from monkey.cli.exit_codes import INTERRUPTED
from monkey.cli.render.apply_outcome import explain_silence
from monkey.cli.render.attempt_lines import format_ending
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.cli.terminal.log_output import open_log_output
from monkey.errors import NotFound


@click.command("logs")
@click.argument("what", metavar="JOB|SWEEP", shell_complete=complete_sweep_names)
@click.option("-f", "--follow", is_flag=True, help="Continue until the job, or all jobs of the sweep, have ended.")
@click.option("--attempt", type=int, metavar="N", help="Show the N-th attempt at JOB, from 1.")
def logs_command(what: str, follow: bool, attempt: int | None) -> int:
    """Show the stdout and stderr of JOB, or of all jobs of SWEEP with each line behind its job's id.

    Shows a job's newest attempt; `monkey info JOB` numbers them all.

    A pipe receives a job's log byte for byte; on a terminal, control sequences are removed.
    """
    try:
        return run_in_world(lambda world: _logs(world, what, attempt, follow=follow))
    except KeyboardInterrupt:  # how one leaves; there is nothing to say
        return INTERRUPTED


async def _logs(world: World, what: str, attempt: int | None, *, follow: bool) -> int:
    import asyncio
    from contextlib import nullcontext

    found = find_sweep_or_job(await world.reader().read(), what)
    only = await _claim(world, found, attempt) if attempt is not None else 0
    jobs = [found.job] if found.job else found.view.ids
    sink = open_log_output(prefixed=len(jobs) > 1)
    logs = LogFollower(world, found.view.state.name, [found.job] if found.job else None, asyncio.sleep, only)
    async with announce_watcher(world.at, world.keys) if follow else nullcontext():
        async for job, data in logs.chunks(follow=follow):
            sink.write(job, data)
    sink.close()
    if not sink.anything:
        click.echo("\n".join(await _silence(world, found, what, attempt)), err=True)
    return 0


async def _claim(world: World, found: LookupResult, attempt: int) -> int:
    """Return the position of the attempt's claim. Raises NotFound."""
    if found.job is None:
        name = found.view.state.name
        raise NotFound(
            f"a sweep has no attempts: expected a job, found {name!r}", hint=f"`monkey list jobs {name}` names its jobs"
        )
    return find_attempt(await read_attempts(world, found.view, found.job), attempt, found.job).k


async def _silence(world: World, found: LookupResult, what: str, attempt: int | None) -> list[str]:
    """Return why nothing was shown, as of now."""
    view = (await world.reader().read([found.view.state.name])).sweeps[found.view.state.name]
    if attempt is None or found.job is None:
        return explain_silence(what, [view.view(job) for job in ([found.job] if found.job else view.ids)])
    tried = find_attempt(await read_attempts(world, view, found.job), attempt, found.job)
    return [f"attempt {attempt} of {found.job} wrote nothing; {format_ending(tried, view.view(found.job))}"]
