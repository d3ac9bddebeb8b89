"""`monkey metrics`: the curves of what jobs logged, over all their attempts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial

import click

from monkey.apply.inspect.attempt_records import find_owner
from monkey.apply.world.lookup import ChosenJob, find_jobs
from monkey.apply.world.world import World
from monkey.cli.render.curves.curve_tables import (
    CSV_HEAD,
    JobCurve,
    format_curves,
    format_curves_csv,
    make_json_printer,
    serialize_curves,
    shorten_curve,
)
from monkey.cli.session import check_one_format, complete_sweep_names, json_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, flatten_text
from monkey.errors import NotFound
from monkey.results.curves.curve_reader import CurveReader
from monkey.spec.yaml.mistakes import suggest_word


@click.command("metrics")
@click.argument("whats", metavar="JOB|SWEEP…", nargs=-1, required=True, shell_complete=complete_sweep_names)
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Only this metric; may be given again.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all points as CSV.")
@json_option
def metrics_command(whats: tuple[str, ...], metrics: tuple[str, ...], as_csv: bool, as_json: bool) -> None:
    """Show the curves of what jobs logged, with their steps: of JOB, or of all jobs of SWEEP.

    A curve is the job's over all its attempts, where they continue each other from checkpoints. Curves of running
    jobs reach to the last heartbeat of their agent.
    """
    check_one_format(**{"--csv": as_csv, "--json": as_json})
    show = _print_csv if as_csv else _print_json if as_json else _print_lines
    run_in_world(lambda world: show(world, whats, metrics))


async def read_curves(
    world: World, whats: Sequence[str], metrics: Collection[str]
) -> AsyncIterator[tuple[ChosenJob, list[JobCurve]]]:
    """Yield each job that is meant with its curves. Raises NotFound where no job logged a metric that is named."""
    chosen = find_jobs(await world.reader().read(), whats)
    for name in metrics:
        _check_logged(name, chosen)
    reader = CurveReader(world.at, world.keys)
    owners = [find_owner(one.view, one.job) for one in chosen]
    places = iter(chosen)
    async for _, curves in reader.read_many(owners, metrics):
        one = next(places)
        yield one, [JobCurve(one, name, curve) for name, curve in curves.items()]


def _check_logged(name: str, chosen: Sequence[ChosenJob]) -> None:
    """Raise NotFound unless a job logged the metric, as far as summaries tell."""
    known = {metric for one in chosen for metric in one.view.view(one.job).metrics}
    if name not in known and known:
        raise NotFound(f"--metric: no job logged {name!r}", hint=suggest_word(name, known, "metric"))


async def _print_lines(world: World, whats: Sequence[str], metrics: Collection[str]) -> None:
    found = [shorten_curve(one) async for _, curves in read_curves(world, whats, metrics) for one in curves]
    lines = format_curves(found, detect_terminal())
    click.echo("\n".join(lines or [f"No metrics yet: {flatten_text(', '.join(whats))} logged nothing."]))


async def _print_csv(world: World, whats: Sequence[str], metrics: Collection[str]) -> None:
    click.echo(",".join(CSV_HEAD) + "\r")
    async for _, curves in read_curves(world, whats, metrics):
        click.echo(format_curves_csv(curves), nl=False)


async def _print_json(world: World, whats: Sequence[str], metrics: Collection[str]) -> None:
    add, end = make_json_printer(partial(click.echo, nl=False))
    async for chosen, curves in read_curves(world, whats, metrics):
        add(serialize_curves(chosen, curves))
    end()
