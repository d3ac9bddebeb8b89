"""`monkey results`: jobs with their metrics, best first."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from monkey.apply.inspect.result_facts import read_sweep_facts
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.atomic_write import write_named_file
from monkey.cli.render.results_table import format_groups, format_importance, format_results
from monkey.cli.session import check_one_format, complete_sweep_names, json_option, print_pieces, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json, flatten_text, join_lines, make_printable
from monkey.errors import MonkeyError, NotFound
from monkey.protocol.notices.sweep_outcome import SweepOutcome, judge_sweep
from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.results.causes.importance import rank_parameters, serialize_importance
from monkey.results.curves.curve_reader import CurveReader
from monkey.results.curves.step_values import read_step_values
from monkey.results.earlier_results import gather_earlier
from monkey.results.export import format_groups_csv, format_json_rows, format_results_csv, serialize_row
from monkey.results.formats.arrow_table import encode_parquet
from monkey.results.formats.latex_table import format_latex, format_latex_groups
from monkey.results.groups import find_parameters, group_results, serialize_group
from monkey.results.result_filter import add_facts, drop_unchanged, filter_results, needs_facts
from monkey.results.result_report import ResultReport, format_report
from monkey.results.result_rows import Results, explain_unmeasured, gather_results

#: Rows up to which a table for people reads curves unasked: each takes milliseconds, in a bucket more.
_MANY = 500
#: Formats by the end of a file's name.
_SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".md": "markdown", ".tex": "latex"}


@dataclass(frozen=True)
class _ResultsOptions:
    sweep: str | None
    group_by: tuple[str, ...]
    where: str | None
    best: bool
    step: int | None
    top: int | None
    everything: bool
    only_changed: bool
    importance: bool
    #: One of those of _SUFFIXES; "": a table for people.
    format: str
    output: Path | None


@click.command("results")
@click.argument("sweep", required=False, shell_complete=complete_sweep_names)
@click.option("--group-by", metavar="NAME,…", help="Show means, with 95 % t intervals, of jobs that share these.")
@click.option("--where", metavar="CONDITION", help="Only matching jobs: 'lr < 0.1 and state == \"succeeded\"'.")
@click.option(
    "--best", "--at-best", "best", is_flag=True, help="Rank by best values, and show other metrics at their steps."
)
@click.option("--step", type=int, metavar="N", help="Show values at step N, or the last ones before.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows.")
@click.option("--all", "everything", is_flag=True, help="Show all columns.")
@click.option("--only-changed", is_flag=True, help="Leave out parameters and metrics that are the same in all rows.")
@click.option("--importance", is_flag=True, help="Show how much each parameter mattered for the best jobs.")
@click.option("--csv", is_flag=True, help="Print CSV.")
@click.option("--markdown", is_flag=True, help="Print a report for a comment on a pull request.")
@click.option("--latex", is_flag=True, help="Print a LaTeX table (booktabs); the best row is bold.")
@click.option("--parquet", is_flag=True, help="Write Parquet to the file of -o.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to FILE, by its name's end: .parquet, .csv, .json, .md or .tex.",
)
@json_option
def results_command(sweep: str | None, group_by: str | None, output: Path | None, **given: Any) -> None:
    """Show the jobs of SWEEP with their metrics, best first by the metric of its spec."""
    names = tuple(name.strip() for name in group_by.split(",")) if group_by else ()
    chosen = {name: bool(given.pop(name)) for name in ("csv", "markdown", "latex", "parquet")}
    asked = _ResultsOptions(
        sweep, names, format=_choose_format(chosen | {"json": given.pop("as_json")}, output), output=output, **given
    )
    for option, on in {"--group-by": names, "--top": asked.top, "--all": asked.everything}.items():
        check_one_format(**{option: bool(on), "--markdown": asked.format == "markdown"})
    check_one_format(**{"--best": asked.best, "--step": asked.step is not None})
    check_one_format(**{"--group-by": bool(names), "--parquet": asked.format == "parquet"})
    for name in ("csv", "markdown", "latex", "parquet"):
        check_one_format(**{"--importance": asked.importance, f"--{name}": asked.format == name})
    check_one_format(**{"--importance": asked.importance, "--group-by": bool(names)})
    if asked.format == "parquet" and output is None:
        raise click.UsageError("--parquet writes a file: name it by -o FILE")
    seen = run_in_world(lambda world: _read(world, asked))
    # Outside of the event loop, where Ctrl-C ends whatever is being computed.
    _put(_render(seen, asked), asked)


def _choose_format(chosen: dict[str, bool], output: Path | None) -> str:
    """Return the format that an option names, or else the end of the file's name."""
    check_one_format(**{f"--{name}": on for name, on in chosen.items()})
    named = next((name for name, on in chosen.items() if on), "")
    if output is None or named:
        return named
    if output.suffix not in _SUFFIXES:
        raise click.UsageError(
            f"-o {output}: expected a name that ends in {', '.join(_SUFFIXES)}, or an option beside it"
        )
    return _SUFFIXES[output.suffix]


def _put(pieces: Iterable[str] | bytes, asked: _ResultsOptions) -> None:
    output = asked.output
    if output is None:
        assert not isinstance(pieces, bytes)  # these have a file
        if asked.format == "csv" and sys.stdout.isatty():  # a pipe gets texts as they are
            pieces = map(make_printable, pieces)
        print_pieces(pieces)
        return
    try:
        write_named_file(output, pieces if isinstance(pieces, bytes) else "".join(pieces))
    except OSError as exc:
        raise MonkeyError(f"{output} cannot be written: {exc.strerror}", hint="name another file by -o") from exc


class _Seen(NamedTuple):
    view: SweepView
    outcome: SweepOutcome
    #: Only for who compares with them.
    revisions: list[NumberedRevision]
    #: Only for a condition that names them.
    facts: dict[str, dict[str, Any]]
    #: Only where values of one step were read.
    results: Results | None


async def _read(world: World, asked: _ResultsOptions) -> _Seen:
    snapshot = await world.reader().read()
    view = _one(snapshot, asked.sweep)
    revisions = []
    if asked.format == "markdown":
        revisions = await list_revisions(world.at, world.keys, world.signers, view.state.name)
    facts = await read_sweep_facts(world, view) if needs_facts(asked.where) else {}
    results = await _read_step_values(world, view, asked)
    return _Seen(view, judge_sweep(world.keys.project, snapshot, view, time.time()), revisions, facts, results)


async def _read_step_values(world: World, view: SweepView, asked: _ResultsOptions) -> Results | None:
    """Return the results with values of one step a job, where they are asked for; None for those as they are."""
    revision = view.state.revision
    assert revision is not None  # _one sees to it
    best = asked.best or revision.settings.take == "best"
    # Importance is of the metric that ranks alone.
    if asked.step is None and (asked.importance or not best):
        return None
    results = _gather(view, asked)
    chooses = asked.where or asked.group_by or asked.step is not None
    needed = results if chooses else results.choose(results.order[: asked.top])
    if len(needed.order) > _MANY:
        if asked.format in ("", "markdown") and not (asked.best or chooses):
            click.echo("note: (last) is not at the step of the best value; --at-best reads what was there", err=True)
            return None
        if len(needed.metrics) > 1:
            click.echo(f"reading the curves of {len(needed.order):,} jobs", err=True)
    read = await read_step_values(needed, CurveReader(world.at, world.keys), revision.adopted, asked.step)
    return read if chooses else read.choose(results.order)


def _gather(view: SweepView, asked: _ResultsOptions) -> Results:
    revision = view.state.revision
    assert revision is not None  # _one sees to it
    return gather_results(revision.table, revision.settings, view.jobs, "best" if asked.best else None)


def _render(seen: _Seen, asked: _ResultsOptions) -> Iterable[str] | bytes:
    view = seen.view
    results = seen.results or _gather(view, asked)
    if asked.step is None and (missing := explain_unmeasured(results)):
        click.echo(f"warning: {flatten_text(missing)}", err=True)
    if asked.where:
        results = filter_results(add_facts(results, seen.facts), asked.where)
    if asked.format == "markdown":
        earlier = gather_earlier(view, seen.revisions)
        return join_lines([format_report(ResultReport(view, results, seen.outcome, earlier))])
    if asked.importance:
        rows = rank_parameters(results)
        if asked.format == "json":
            return format_json_rows(map(serialize_importance, rows), dump_json)
        return join_lines(format_importance(rows[: asked.top], detect_terminal()))
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


def _render_jobs(results: Results, asked: _ResultsOptions) -> Iterable[str] | bytes:
    chosen = results.choose(results.order[: asked.top])
    if asked.only_changed:
        chosen = drop_unchanged(chosen)
    if asked.format == "json":
        return format_json_rows(map(serialize_row, chosen.rows), dump_json)
    if asked.format == "csv":
        return format_results_csv(chosen)
    if asked.format == "parquet":
        return encode_parquet(chosen)
    if asked.format == "latex":
        return join_lines(format_latex(chosen, everything=asked.everything))
    shown = chosen.choose(results.order) if asked.only_changed else results
    return join_lines(format_results(shown, detect_terminal(), everything=asked.everything, top=asked.top))


def _render_groups(results: Results, asked: _ResultsOptions) -> Iterable[str]:
    results = drop_unchanged(results) if asked.only_changed else results
    names = find_parameters(asked.group_by, results)
    groups = group_results(results, names)
    if asked.format == "json":
        return format_json_rows(map(serialize_group, groups[: asked.top]), dump_json)
    if asked.format == "csv":
        return format_groups_csv(groups[: asked.top], names, results)
    everything, top = asked.everything, asked.top
    if asked.format == "latex":
        return join_lines(format_latex_groups(groups, names, results, everything=everything, top=top))
    to = detect_terminal()
    return join_lines(format_groups(groups, names, results, to, everything=everything, top=top))
