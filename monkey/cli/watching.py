"""Watching sweeps to their end on a screen, and telling what came of them: `apply`, `status --watch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from monkey.apply.watch.sweep_progress import Progress
from monkey.apply.watch.watch_loop import Watch
from monkey.apply.world.world import World
from monkey.cli.live_view import Live
from monkey.cli.render.apply_outcome import outcome
from monkey.cli.render.parameter_text import parameters_text
from monkey.cli.render.progress_lines import Best
from monkey.cli.render.results_table import results_lines
from monkey.cli.terminal.text import one_line, terminal
from monkey.protocol.status.store_snapshot import Snapshot
from monkey.results.result_rows import Results, gather, unmeasured

#: Is told how far sweeps are.
Looked = Callable[[Sequence["Progress"]], None]
#: Rows of the results table that are shown at the end.
TOP = 10


async def watch_to_end(
    world: World, names: Sequence[str], looked: Looked | None = None, *, changed: bool = True
) -> int:
    """Watch the sweeps until none is worked on, print what came of them, and return the exit code.

    `looked`: is told how far they are at each look; `changed`: something was applied just now; without it an end that
    is there at once is told in a word.
    """
    with Live(find_best) as live:

        def show(snapshot: Snapshot | None, progress: Sequence[Progress], trouble: str) -> None:
            if looked is not None and progress:
                looked(progress)
            live.show(snapshot, progress, trouble)

        progress = await Watch(world.at, world.keys, world.reader(), world.fleets, names, show).run()
    best = {one.name: found for one in progress if (found := find_best(one)) is not None}
    tables = {one.name: _top(one) for one in progress}
    click.echo("\n".join(outcome(progress, best, tables, terminal(), changed=changed)))
    return 0 if all(one.wait.well for one in progress) else 1


def _results(one: Progress) -> Results | None:
    """Return the results so far of a sweep that ranks its jobs; None of another."""
    revision = one.view.state.revision
    if revision is None or revision.settings.metric is None:
        return None
    return gather(revision.table, revision.settings, one.view.jobs)


def _top(one: Progress) -> list[str]:
    results = _results(one)
    if results is None:
        return []
    missing = unmeasured(results)
    lines = [terminal().paint(f"warning: {one_line(missing)}", "yellow"), ""] if missing else []
    return lines + results_lines(results, terminal(), top=TOP, more=f"`monkey results {one.name}` shows all")


def find_best(one: Progress) -> Best | None:
    """Return the best job so far by the sweep's own metric; None where no job that counts has it."""
    results = _results(one)
    if results is None or results.metric is None or (best := results.best) is None:
        return None
    return Best(results.metric, best.metrics[results.metric], best.job, parameters_text(best.parameters))
