"""Watching sweeps to their end on a screen, and telling what came of them: `apply`, `status --watch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from monkey.cli.render.words import one_line, terminal

if TYPE_CHECKING:
    from monkey.apply.observe import World
    from monkey.apply.wait import Progress
    from monkey.cli.render.progress import Best
    from monkey.protocol.snapshot import Snapshot

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
    from monkey.apply.wait import Watch
    from monkey.cli.live import Live
    from monkey.cli.render.outcome import outcome

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


def _top(one: Progress) -> list[str]:
    from monkey.cli.render.results import results_lines
    from monkey.results.rows import gather, unmeasured

    revision = one.view.state.revision
    if revision is None or revision.settings.metric is None:
        return []
    results = gather(revision.table, revision.settings, one.view.jobs)
    missing = unmeasured(results)
    lines = [terminal().paint(f"warning: {one_line(missing)}", "yellow"), ""] if missing else []
    return lines + results_lines(results, terminal(), top=TOP, more=f"`monkey results {one.name}` shows all")


def find_best(one: Progress) -> Best | None:
    """Return the best job so far by the sweep's own metric, of those that have not failed; None where none has it."""
    from monkey.cli.render.parameters import parameters_text
    from monkey.cli.render.progress import Best
    from monkey.metrics.summary import finite

    revision = one.view.state.revision
    if revision is None or revision.settings.metric is None:
        return None
    metric, sign = revision.settings.metric, -1 if revision.settings.maximize else 1
    jobs = map(one.view.view, one.view.ids)
    values = ((job.job, job.metrics.get(metric, {}).get("last")) for job in jobs if job.state != "failed")
    known = [(sign * value, job) for job, value in values if isinstance(value, int | float) and finite(value)]
    if not known:
        return None
    value, job = min(known, key=lambda pair: pair[0])
    return Best(metric, sign * value, job, parameters_text(revision.table.parameters(revision.rows[job])))
