"""`monkey results`: jobs with their metrics, best first."""

from __future__ import annotations

from dataclasses import dataclass

import click

from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.cli.render.results_table import format_groups, format_results
from monkey.cli.session import check_one_format, complete_sweep_names, json_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json, flatten_text
from monkey.errors import MonkeyError, NotFound
from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
from monkey.results.export import format_groups_csv, format_results_csv, serialize_row
from monkey.results.groups import group_results, serialize_group
from monkey.results.result_rows import MetricPick, Results, explain_unmeasured, filter_results, gather_results


@dataclass(frozen=True)
class _ResultsOptions:
    sweep: str | None
    group_by: tuple[str, ...]
    where: str | None
    best: bool
    top: int | None
    everything: bool
    as_csv: bool
    as_json: bool


@click.command("results")
@click.argument("sweep", required=False, shell_complete=complete_sweep_names)
@click.option("--group-by", metavar="NAME,…", help="Show mean and spread over jobs that share these parameters.")
@click.option("--where", metavar="CONDITION", help="Only matching jobs: 'lr < 0.1 and state == \"succeeded\"'.")
@click.option("--best", is_flag=True, help="Rank by each job's best value instead of its last.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows.")
@click.option("--all", "everything", is_flag=True, help="Show all columns.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@json_option
def results_command(
    sweep: str | None,
    group_by: str | None,
    where: str | None,
    best: bool,
    top: int | None,
    everything: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show the jobs of SWEEP with their metrics, best first by the metric of its spec."""
    check_one_format(**{"--csv": as_csv, "--json": as_json})
    names = tuple(name.strip() for name in group_by.split(",")) if group_by else ()
    asked = _ResultsOptions(sweep, names, where, best, top, everything, as_csv, as_json)
    click.echo(run_in_world(lambda world: _results(world, asked)), nl=not as_csv)


async def _results(world: World, asked: _ResultsOptions) -> str:
    view = _one(await world.reader().read(), asked.sweep)
    revision = view.state.revision
    assert revision is not None  # _one sees to it
    results = gather_results(
        revision.table, revision.settings, view.jobs, MetricPick.BEST if asked.best else MetricPick.LAST
    )
    if missing := explain_unmeasured(results):
        click.echo(f"warning: {flatten_text(missing)}", err=True)
    if asked.where:
        results = filter_results(results, asked.where)
    return _grouped(results, asked) if asked.group_by else _listed(results, asked)


def _one(snapshot: StoreSnapshot, name: str | None) -> SweepView:
    if name is not None:
        return find_sweep(snapshot, name)
    views = [view for view in snapshot.sweeps.values() if view.state.revision is not None]
    if not views:
        raise NotFound("no sweep was applied yet", hint="`monkey apply` does")
    if len(views) > 1:
        there = ", ".join(view.state.name for view in views)
        raise MonkeyError(f"expected the name of a sweep, since there are several: {there}")
    return views[0]


def _listed(results: Results, asked: _ResultsOptions) -> str:
    from dataclasses import replace

    if asked.as_json:
        return dump_json([serialize_row(row) for row in results.rows[: asked.top]], indent=1)
    if asked.as_csv:
        return format_results_csv(replace(results, rows=results.rows[: asked.top]))
    return "\n".join(format_results(results, detect_terminal(), everything=asked.everything, top=asked.top))


def _grouped(results: Results, asked: _ResultsOptions) -> str:
    groups = group_results(results, asked.group_by)
    if asked.as_json:
        return dump_json([serialize_group(made) for made in groups[: asked.top]], indent=1)
    if asked.as_csv:
        return format_groups_csv(groups[: asked.top], asked.group_by, results.metrics)
    to = detect_terminal()
    return "\n".join(format_groups(groups, asked.group_by, results, to, everything=asked.everything, top=asked.top))
