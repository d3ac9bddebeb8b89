"""`monkey plot`: curves and results of a sweep, drawn in the terminal or into a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from monkey.apply.inspect.attempt_records import find_owner
from monkey.apply.world.lookup import ChosenJob, find_jobs
from monkey.apply.world.world import World
from monkey.cli.render.curves.picture_plot import check_picture_path, write_picture
from monkey.cli.render.curves.terminal_plot import draw_heat, draw_lines
from monkey.cli.render.parameter_text import find_job_parameters, format_parameters
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.cli.terminal.text import detect_terminal, flatten_text, format_plural
from monkey.errors import MonkeyError
from monkey.results.curves.curve import Curve, reduce_curve
from monkey.results.curves.curve_reader import CurveReader
from monkey.results.plots.line_plot import LinePlot, make_curves_plot, make_scatter_plot
from monkey.results.plots.parallel_plot import ParallelPlot, make_parallel_plot
from monkey.results.result_rows import Results, gather_results

#: Curves that a terminal shows, and a file: more are one stain.
TERMINAL_CURVES, FILE_CURVES = 8, 200


@dataclass(frozen=True)
class _PlotOptions:
    whats: tuple[str, ...]
    kind: str
    metric: str | None
    parameter: str | None
    top: int
    to_file: bool


@click.command("plot")
@click.argument("whats", metavar="SWEEP|JOB…", nargs=-1, required=True, shell_complete=complete_sweep_names)
@click.option("--metric", metavar="NAME", help="The metric; by default the one that ranks the sweep.")
@click.option("--kind", type=click.Choice(["curves", "scatter", "parallel"]), default="curves", help="What to draw.")
@click.option("--parameter", metavar="NAME", help="Of a scatter plot; else the one that varies most.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Curves of the best N jobs: 8, or 200 in a file.")
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE: .png, .svg or .html.")
def plot_command(
    whats: tuple[str, ...],
    metric: str | None,
    kind: str,
    parameter: str | None,
    top: int | None,
    output: Path | None,
) -> None:
    """Draw the jobs of SWEEP, or each JOB, in the terminal or into a file.

    `curves` has a line for each job, over its steps. `scatter` has a parameter against the metric. `parallel` has all
    parameters: as parallel coordinates in a file, and in a terminal as a heat map of which values the best jobs have.
    """
    if output is not None:
        check_picture_path(output)
    most = top or (TERMINAL_CURVES if output is None else FILE_CURVES)
    asked = _PlotOptions(whats, kind, metric, parameter, most, output is not None)
    plot, notes = run_in_world(lambda world: _make_plot(world, asked))
    if output is not None:
        write_picture(plot, output)
        click.echo(flatten_text(f"{output} written."))
    else:
        to = detect_terminal()
        drawn = draw_lines(plot, to) if isinstance(plot, LinePlot) else draw_heat(plot, to)
        click.echo("\n".join(drawn))
    for note in notes:
        click.echo(flatten_text(note), err=True)


async def _make_plot(world: World, asked: _PlotOptions) -> tuple[LinePlot | ParallelPlot, list[str]]:
    """Return the plot, and what is to be said of it."""
    chosen = find_jobs(await world.reader().read(), asked.whats)
    if asked.kind == "curves":
        return await _make_curves(world, chosen, asked)
    views = {one.view.state.name: one.view for one in chosen}
    if len(views) != 1:
        raise MonkeyError(f"--kind {asked.kind}: expected jobs of one sweep, found {', '.join(views)}")
    results = _gather(chosen)
    metric = asked.metric or results.metric or _guess_metric(results)
    if asked.kind == "scatter":
        return make_scatter_plot(results, metric, asked.parameter), []
    return make_parallel_plot(results, metric), []


def _gather(chosen: Sequence[ChosenJob]) -> Results:
    """Return the results of the chosen jobs, which are of one sweep, best first."""
    view = chosen[0].view
    revision = view.state.revision
    assert revision is not None  # its jobs were found
    results = gather_results(revision.table, revision.settings, view.jobs)
    wanted = {one.job for one in chosen}
    return results.choose([at for at in results.order if results.table.ids[at] in wanted])


def _guess_metric(results: Results) -> str:
    if len(results.metrics) == 1:
        return results.metrics[0]
    there = f"--metric names one: {', '.join(results.metrics[:20])}" if results.metrics else "no job logged any yet"
    raise MonkeyError("which metric? The spec names none", hint=there)


async def _make_curves(world: World, chosen: Sequence[ChosenJob], asked: _PlotOptions) -> tuple[LinePlot, list[str]]:
    first = _gather([one for one in chosen if one.view is chosen[0].view])
    metric = asked.metric or first.metric or _guess_metric(first)
    ranked = {first.table.ids[at]: rank for rank, at in enumerate(first.order)}
    order = sorted(chosen, key=lambda one: ranked.get(one.job, len(ranked)))
    names = _name_jobs(order)
    found: list[tuple[str, Curve]] = []
    reader = CurveReader(world.at, world.keys)
    places = iter(names)
    async for _, curves in reader.read_many([find_owner(one.view, one.job) for one in order], [metric]):
        name = next(places)
        if metric in curves:
            found.append((name, reduce_curve(curves[metric])))
        if len(found) == asked.top:
            break
    if not found:
        raise MonkeyError(f"no job logged {metric!r} yet", hint="`monkey metrics` shows what jobs logged")
    left = len(order) - len(found)
    how = f"{format_plural(len(found), 'curve')} of {format_plural(len(order), 'job')}, the best first"
    return make_curves_plot(metric, found), [f"{how}; --top N draws others"] if left else []


def _name_jobs(jobs: Sequence[ChosenJob]) -> list[str]:
    """Return what tells the jobs apart: the parameters that differ among them, or else their ids."""
    parameters = [find_job_parameters(one.view, one.job) for one in jobs]
    keys = dict.fromkeys(name for each in parameters for name in each)
    varying = [name for name in keys if len({repr(each.get(name)) for each in parameters}) > 1]
    names = [format_parameters({name: each[name] for name in varying if name in each}) for each in parameters]
    return names if len({*names}) == len(names) and "" not in names else [one.job for one in jobs]
