"""The watch over sweeps on a screen until they end, and the report of their results: `apply`, `status --watch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.apply.watch.watch_loop import SweepWatch
from monkey.apply.world.world import World
from monkey.cli.live_view import LiveView
from monkey.cli.render.apply_outcome import format_outcome
from monkey.cli.render.parameter_text import format_parameters
from monkey.cli.render.progress_lines import BestJob
from monkey.cli.render.results_table import format_results
from monkey.cli.terminal.text import detect_terminal, flatten_text
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.results.result_rows import Results, explain_unmeasured, gather_results

#: Called at each look with the progress of the sweeps.
Looked = Callable[[Sequence[SweepProgress]], None]
#: Rows of the results table that are shown at the end.
TOP = 10


async def watch_to_end(
    world: World, names: Sequence[str], looked: Looked | None = None, *, changed: bool = True
) -> int:
    """Watch the sweeps until no agent works on them, print their outcome, and return the exit code.

    `looked`: receives their progress at each look. `changed`: an apply changed something just now. Without it, sweeps
    that have ended already are reported in a few words.
    """
    with LiveView(find_best) as live:

        def show(snapshot: StoreSnapshot | None, progress: Sequence[SweepProgress], trouble: str) -> None:
            if looked is not None and progress:
                looked(progress)
            live.show(snapshot, progress, trouble)

        progress = await SweepWatch(world.at, world.keys, world.reader(), world.fleets, names, show).run()
    best = {one.name: found for one in progress if (found := find_best(one)) is not None}
    tables = {one.name: _top(one) for one in progress}
    click.echo("\n".join(format_outcome(progress, best, tables, detect_terminal(), changed=changed)))
    return 0 if all(one.wait.well for one in progress) else 1


def _results(one: SweepProgress) -> Results | None:
    """Return the results so far of a sweep that has a metric; None for another."""
    revision = one.view.state.revision
    if revision is None or revision.settings.metric is None:
        return None
    return gather_results(revision.table, revision.settings, one.view.jobs)


def _top(one: SweepProgress) -> list[str]:
    results = _results(one)
    if results is None:
        return []
    missing = explain_unmeasured(results)
    lines = [detect_terminal().paint(f"warning: {flatten_text(missing)}", "yellow"), ""] if missing else []
    return lines + format_results(results, detect_terminal(), top=TOP, more=f"`monkey results {one.name}` shows all")


def find_best(one: SweepProgress) -> BestJob | None:
    """Return the best job so far by the sweep's own metric; None where no counting job has a value."""
    results = _results(one)
    if results is None or results.metric is None or (best := results.best) is None:
        return None
    return BestJob(results.metric, best.metrics[results.metric], best.job, format_parameters(best.parameters))
