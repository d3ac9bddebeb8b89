"""`monkey results`: jobs with their metrics, best first."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import click

from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.cli.render.results_table import format_groups, format_results
from monkey.cli.session import check_one_format, complete_sweep_names, json_option, print_pieces, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json, flatten_text, join_lines
from monkey.errors import MonkeyError, NotFound
from monkey.protocol.notices.sweep_outcome import SweepOutcome, judge_sweep
from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.results.earlier_results import gather_earlier
from monkey.results.export import format_groups_csv, format_json_rows, format_results_csv, serialize_row
from monkey.results.groups import group_results, serialize_group
from monkey.results.result_report import ResultReport, format_report
from monkey.results.result_rows import Results, explain_unmeasured, filter_results, gather_results


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
    as_markdown: bool


@click.command("results")
@click.argument("sweep", required=False, shell_complete=complete_sweep_names)
@click.option("--group-by", metavar="NAME,…", help="Show means, with 95 % t intervals, of jobs that share these.")
@click.option("--where", metavar="CONDITION", help="Only matching jobs: 'lr < 0.1 and state == \"succeeded\"'.")
@click.option("--best", is_flag=True, help="Rank by best values, whatever the spec takes.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows.")
@click.option("--all", "everything", is_flag=True, help="Show all columns.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a report for a comment on a pull request.")
@json_option
def results_command(
    sweep: str | None,
    group_by: str | None,
    where: str | None,
    best: bool,
    top: int | None,
    everything: bool,
    as_csv: bool,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Show the jobs of SWEEP with their metrics, best first by the metric of its spec."""
    check_one_format(**{"--csv": as_csv, "--json": as_json, "--markdown": as_markdown})
    for option, given in {"--group-by": group_by, "--top": top, "--all": everything}.items():
        check_one_format(**{option: bool(given), "--markdown": as_markdown})
    names = tuple(name.strip() for name in group_by.split(",")) if group_by else ()
    asked = _ResultsOptions(sweep, names, where, best, top, everything, as_csv, as_json, as_markdown)
    seen = run_in_world(lambda world: _read(world, asked))
    # Outside of the event loop, where Ctrl-C ends whatever is being computed.
    print_pieces(_render(seen, asked))


class _Seen(NamedTuple):
    view: SweepView
    outcome: SweepOutcome
    #: Only for who compares with them.
    revisions: list[NumberedRevision]


async def _read(world: World, asked: _ResultsOptions) -> _Seen:
    snapshot = await world.reader().read()
    view = _one(snapshot, asked.sweep)
    revisions = []
    if asked.as_markdown:
        revisions = await list_revisions(world.at, world.keys, world.signers, view.state.name)
    return _Seen(view, judge_sweep(world.keys.project, snapshot, view, time.time()), revisions)


def _render(seen: _Seen, asked: _ResultsOptions) -> Iterable[str]:
    view = seen.view
    revision = view.state.revision
    assert revision is not None  # _one sees to it
    results = gather_results(revision.table, revision.settings, view.jobs, "best" if asked.best else None)
    if missing := explain_unmeasured(results):
        click.echo(f"warning: {flatten_text(missing)}", err=True)
    if asked.where:
        results = filter_results(results, asked.where)
    if asked.as_markdown:
        earlier = gather_earlier(view, seen.revisions)
        return join_lines([format_report(ResultReport(view, results, seen.outcome, earlier))])
    return _render_groups(results, asked) if asked.group_by else _render_jobs(results, asked)


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


def _render_jobs(results: Results, asked: _ResultsOptions) -> Iterable[str]:
    chosen = results.choose(results.order[: asked.top])
    if asked.as_json:
        return format_json_rows(map(serialize_row, chosen.rows), dump_json)
    if asked.as_csv:
        return format_results_csv(chosen)
    return join_lines(format_results(results, detect_terminal(), everything=asked.everything, top=asked.top))


def _render_groups(results: Results, asked: _ResultsOptions) -> Iterable[str]:
    groups = group_results(results, asked.group_by)
    if asked.as_json:
        return format_json_rows(map(serialize_group, groups[: asked.top]), dump_json)
    if asked.as_csv:
        return format_groups_csv(groups[: asked.top], asked.group_by, results.metrics)
    to = detect_terminal()
    return join_lines(format_groups(groups, asked.group_by, results, to, everything=asked.everything, top=asked.top))
