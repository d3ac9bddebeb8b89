"""`monkey compare`: what HEAD changes against BASE, by pairs of jobs, with an exit code for CI."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isfinite

import click

from monkey.apply.world.lookup import find_revision, find_sweep
from monkey.apply.world.world import World
from monkey.cli.exit_codes import REGRESSION
from monkey.cli.render.results_table import lay_out_results
from monkey.cli.session import check_one_format, complete_sweep_names, json_option, project_file_option, run_in_world
from monkey.cli.terminal.text import Terminal, detect_terminal, dump_json, flatten_text
from monkey.errors import MonkeyError
from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.results.comparison.compared_metric import ComparedMetric, select_metric
from monkey.results.comparison.comparison_report import format_comparison_markdown, serialize_comparison
from monkey.results.comparison.comparison_table import (
    explain_columns,
    format_heading,
    format_overall,
    format_verdict,
    list_left_out,
    tabulate_comparison,
)
from monkey.results.comparison.job_pairs import ComparedSide, explain_no_pairs, filter_sides, find_seeds, match_jobs
from monkey.results.comparison.sweep_comparison import (
    ComparisonMark,
    ComparisonVerdict,
    SweepComparison,
    compare_sides,
)
from monkey.results.result_rows import gather_results
from monkey.spec.yaml.mistakes import suggest_word

_LIMIT = re.compile(r"\s*worse\s*>\s*(\S+)\s*")
_COLOURS = {
    ComparisonMark.WORSE: "red",
    ComparisonMark.BETTER: "green",
    ComparisonMark.UNKNOWN: "yellow",
    ComparisonMark.SAME: "dim",
}


@dataclass(frozen=True)
class _ChosenSide:
    """One side as it was found: the view is of the revision that was asked for."""

    name: str
    view: SweepView


@click.command("compare")
@click.argument("base", metavar="BASE", shell_complete=complete_sweep_names)
@click.argument("head", metavar="HEAD", shell_complete=complete_sweep_names)
@click.option("--metric", metavar="NAME", help="The metric; by default the one that ranks HEAD.")
@click.option("--goal", type=click.Choice(["maximize", "minimize"]), help="Of a metric that no spec ranks by.")
@click.option("--ignore", "ignored", metavar="PARAM", multiple=True, help="Pair jobs though this differs; repeatable.")
@click.option("--seed", "seeds", metavar="PARAM", multiple=True, help="What repeats a job; by default `seed`, `fold` …")
@click.option("--where", metavar="CONDITION", help="Compare only jobs whose parameters fit.")
@click.option("--fail-if", default="worse > 0", show_default=True, metavar="LIMIT", help="Exit with 2 if surely so.")
@click.option("--allow-unknown", is_flag=True, help="Exit with 0 where there is too little to say.")
@click.option("--markdown", is_flag=True, help="Print a report for a comment on a pull request.")
@json_option
@project_file_option
def compare_command(
    base: str,
    head: str,
    metric: str | None,
    goal: str | None,
    ignored: tuple[str, ...],
    seeds: tuple[str, ...],
    where: str | None,
    fail_if: str,
    allow_unknown: bool,
    markdown: bool,
    as_json: bool,
) -> int:
    """Compare HEAD with BASE, each a SWEEP or a revision of one (SWEEP@3).

    Jobs are paired by equal parameters and then by seed. Each configuration has its mean difference with a 95 % t
    interval. Exit with 2 if HEAD is worse: the whole interval is beyond the limit. Exit with 1 if there is too little
    to say, as where a job has no partner.
    """
    check_one_format(**{"--json": as_json, "--markdown": markdown})
    limit = _parse_limit(fail_if)
    sides = run_in_world(lambda world: _read_sides(world, base, head))
    # Outside of the event loop, where Ctrl-C ends whatever is being computed.
    compared = _compare(*sides, metric, goal, ignored, seeds, where, limit)
    if as_json:
        click.echo(dump_json(serialize_comparison(compared), indent=2))
    elif markdown:
        click.echo(format_comparison_markdown(compared), nl=False)
    else:
        click.echo("\n".join(_format_lines(compared, detect_terminal())))
    if compared.verdict is ComparisonVerdict.UNKNOWN and not allow_unknown:
        raise MonkeyError(
            format_verdict(compared),
            hint="run what is missing, leave it out by --where, or accept it by --allow-unknown",
        )
    return REGRESSION if compared.verdict is ComparisonVerdict.REGRESSION else 0


def _parse_limit(text: str) -> float:
    """Return by how much HEAD may be worse, in units of the metric. Raises UsageError."""
    found = _LIMIT.fullmatch(text)
    try:
        limit = float(found[1]) if found else -1.0
    except ValueError:
        limit = -1.0
    if limit < 0 or not isfinite(limit):
        raise click.UsageError(f"--fail-if: expected 'worse > NUMBER', of 0 or more, found {text[:80]!r}")
    return limit


async def _read_sides(world: World, base: str, head: str) -> tuple[_ChosenSide, _ChosenSide]:
    snapshot = await world.reader().read()
    return await _find_side(world, snapshot, base), await _find_side(world, snapshot, head)


async def _find_side(world: World, snapshot: StoreSnapshot, what: str) -> _ChosenSide:
    """Return the sweep, or its revision, that a user named. Raises NotFound, and UsageError for what is neither."""
    name, at, number = what.partition("@")
    view = find_sweep(snapshot, name)
    if not at:
        return _ChosenSide(f"{name}@{view.state.revision_at}", view)
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise click.UsageError(f"expected SWEEP or SWEEP@NUMBER, as digits@3, found {what[:80]!r}")
    revisions = await list_revisions(world.at, world.keys, world.signers, name)
    return _ChosenSide(what, view.with_revision(find_revision(revisions, int(number), name).revision))


def _compare(
    base: _ChosenSide,
    head: _ChosenSide,
    asked: str | None,
    goal: str | None,
    ignored: tuple[str, ...],
    seeds: tuple[str, ...],
    where: str | None,
    limit: float,
) -> SweepComparison:
    before, after = base.view.state.revision, head.view.state.revision
    assert before is not None and after is not None  # they were found
    if asked is not None:
        logged = {name for side in (base, head) for job in side.view.jobs.values() for name in job.metrics}
        if logged and asked not in logged:
            raise MonkeyError(f"no job logged {asked!r}", hint=suggest_word(asked, logged, "metrics"))
    metric = select_metric(before.settings, after.settings, asked, goal)
    sides = _gather_side("BASE", base, metric), _gather_side("HEAD", head, metric)
    if where is not None:
        sides = filter_sides(*sides, where)
    repeats = find_seeds(*sides, seeds)
    paired = match_jobs(*sides, metric.name, ignored, repeats)
    missing = "" if paired.configurations else explain_no_pairs(*sides, ignored, repeats)
    return replace(compare_sides(*sides, paired, metric, limit, missing), where=where or "")


def _gather_side(role: str, chosen: _ChosenSide, metric: ComparedMetric) -> ComparedSide:
    """Return the results of a side, both sides judged by one metric."""
    revision = chosen.view.state.revision
    assert revision is not None  # it was found
    settings = replace(revision.settings, metric=metric.name, maximize=metric.maximize, take=metric.take)
    results = gather_results(revision.table, settings, chosen.view.jobs)
    return ComparedSide(role, chosen.name, results, revision.adopted)


def _format_lines(compared: SweepComparison, to: Terminal) -> list[str]:
    lines = [to.paint(flatten_text(format_heading(compared)), "bold")]
    if compared.configurations:
        colours = {at: _COLOURS[each.mark] for at, each in enumerate(compared.configurations) if each.mark in _COLOURS}
        made = tabulate_comparison(compared, signs=not to.ascii)
        note = explain_columns(compared)
        lines += lay_out_results(made, to, colours, [], whole=False, note=note, full="--json")
    below = [format_overall(compared), *list_left_out(compared), format_verdict(compared)]
    return [*lines, *(flatten_text(line) for line in below if line)]
