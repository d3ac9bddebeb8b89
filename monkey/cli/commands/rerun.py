"""`monkey rerun`: finished jobs run once more, and what comes out is held against the record."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import isfinite

import click

from monkey.apply.agent_environment import renew_idle_agents
from monkey.apply.checks.check_planning import CheckOrder, plan_checks
from monkey.apply.checks.check_records import find_check, read_facts
from monkey.apply.ci_refusals import check_work_stays
from monkey.apply.execute import execute_plan
from monkey.apply.planning import PlanningResult
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.watch.watch_loop import SweepWatch
from monkey.apply.world.world import World
from monkey.cli.exit_codes import INTERRUPTED
from monkey.cli.live_view import LiveView
from monkey.cli.order_reports import print_order
from monkey.cli.render.evidence.check_report import format_checks, serialize_checks
from monkey.cli.rent_prompt import ask_plan_consent, yes_option
from monkey.cli.session import complete_sweep_names, json_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json, flatten_text, format_plural
from monkey.plan.commits.refusals import check_refusals
from monkey.results.checks.check_reading import judge_checks
from monkey.results.checks.check_verdict import CheckTolerance

_NEEDS = "expected --check or --show: a finished job runs again only as a check, which leaves the record as it is"


@dataclass
class _Rerun:
    order: CheckOrder
    tolerance: CheckTolerance
    as_json: bool
    yes: bool
    detach: bool
    #: Checks that are applied: from here on an interrupt only detaches.
    applied: list[str] = field(default_factory=list)

    def say(self, what: str, done: str) -> None:
        """Tell of a step; not among the JSON."""
        if self.as_json:
            click.echo(f"{what}: {done}", err=True)
        else:
            print_order(what, done)


def _parse_share(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 < share <= 1:
        raise click.BadParameter(f"expected a share above 0% and up to 100%, such as 1%, found {text!r}")
    return share


def _parse_limits(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for text in texts:
        metric, _, number = text.rpartition("=")
        try:
            found[metric] = float(number)
        except ValueError:
            found[metric] = -1.0
        if not isfinite(found[metric]) or found[metric] < 0:
            raise click.BadParameter(f"expected a relative difference, such as 1e-6 or loss=1e-6, found {text!r}")
    return found


@click.command("rerun")
@click.argument("what", metavar="[JOB|SWEEP]...", nargs=-1, shell_complete=complete_sweep_names)
@click.option("--check", is_flag=True, help="Run the jobs once more, and compare with the record, which stays.")
@click.option("--show", is_flag=True, help="Show the verdicts of earlier checks: `check-1.digits`.")
@click.option(
    "--sample",
    "share",
    metavar="PERCENT",
    callback=_parse_share,
    help="Check only this share of the jobs, 1%: others each day (without a JOB or SWEEP: of all).",
)
@click.option("--on", "provider", metavar="PROVIDER", default="", help="Run on this provider, not the sweep's own.")
@click.option("--fresh", is_flag=True, help="Resolve requirements anew, not to the recorded versions of packages.")
@click.option(
    "--rtol",
    "limits",
    metavar="[METRIC=]X",
    multiple=True,
    callback=_parse_limits,
    help="Accept this relative difference of a metric, or of all: loss=1e-6. Default: exact.",
)
@click.option(
    "--ignore", "ignored", metavar="NAME", multiple=True, help="Do not compare this metric or output: time_*."
)
@click.option(
    "-d", "--detach", is_flag=True, help="Return as soon as the checks are queued; --show tells the verdicts."
)
@yes_option
@json_option
def rerun_command(
    what: tuple[str, ...],
    check: bool,
    show: bool,
    share: float | None,
    provider: str,
    fresh: bool,
    limits: dict[str, float],
    ignored: tuple[str, ...],
    detach: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Check finished JOBs, or all of SWEEP: run them once more, and compare outputs and metrics with the record.

    A check is a sweep of its own, `check-1.digits`: nothing of the jobs, their metrics and dashboards changes. Exits
    with 1 if a result differs, or a check has not succeeded. Ctrl-C while watching detaches.
    """
    if check == show:
        raise click.UsageError(_NEEDS if not check else "--check and --show exclude each other")
    if show and (share is not None or provider or fresh or detach):
        raise click.UsageError("--show runs nothing: --sample, --on, --fresh and --detach go with --check")
    if not what and share is None:
        raise click.UsageError("expected JOBs or SWEEPs; or --sample PERCENT, of all jobs that succeeded")
    order = CheckOrder(what, share, f"{datetime.now(UTC):%Y-%m-%d}", provider, fresh)
    asked = _Rerun(order, CheckTolerance(limits, ignored), as_json, yes, detach)
    if show:
        return run_in_world(lambda world: _judge(world, what, asked))
    try:
        return run_in_world(lambda world: _check(world, asked))
    except KeyboardInterrupt:
        if not asked.applied:
            raise
        click.echo(f"\nDetached: the checks go on without this terminal. {_come_back(asked.applied)}", err=True)
        return INTERRUPTED


def _come_back(names: Sequence[str]) -> str:
    listed = flatten_text(" ".join(names))
    return f"`monkey rerun --show {listed}` shows the verdicts; `monkey cancel {flatten_text(names[0])}` stops it."


async def _check(world: World, asked: _Rerun) -> int:
    for fleet in world.local_fleets:
        fleet.prepare()
    planned, chosen, among = await plan_checks(world, asked.order)
    if planned is None:
        empty = f"The sample of {asked.order.day} has none of {format_plural(among, 'finished job')}."
        click.echo("[]" if asked.as_json else empty)
        return 0
    asked.say("checks", f"{chosen:,} of {format_plural(among, 'finished job')}")
    if asked.detach:
        check_work_stays(world.project, planned.plan)
    ask_plan_consent(planned.plan, yes=asked.yes)
    await renew_idle_agents(world, planned.plan, asked.say)
    check_refusals(planned.plan)
    await execute_plan(world, planned.plan, planned.wanted, asked.say)
    asked.applied = [sweep.name for sweep in planned.plan.sweeps]
    if asked.detach:
        return await _leave(world, planned, asked)
    with LiveView(lambda progress: None, sys.stderr if asked.as_json else None) as live:
        await SweepWatch(world.at, world.keys, world.reader(), world.fleets, asked.applied, live.show).run()
    return await _judge(world, asked.applied, asked)


async def _leave(world: World, planned: PlanningResult, asked: _Rerun) -> int:
    await wait_for_agents(world.reader(), [world.fleet(part.fleet) for part in planned.plan.fleets if part.jobs])
    if asked.as_json:
        click.echo(dump_json({"checks": asked.applied}))
    else:
        click.echo(f"Queued. {_come_back(asked.applied)}")
    return 0


async def _judge(world: World, names: Sequence[str], asked: _Rerun) -> int:
    snapshot = await world.reader().read()
    views = [find_check(snapshot, name) for name in names]
    read = partial(read_facts, world)
    found = [(view, await judge_checks(world.at, world.keys, view, asked.tolerance, read)) for view in views]
    if asked.as_json:
        click.echo(dump_json([serialize_checks(view, checks) for view, checks in found], indent=2))
    else:
        click.echo("\n".join(line for view, checks in found for line in format_checks(view, checks, detect_terminal())))
    return 0 if all(one.verdict.well for _, checks in found for one in checks) else 1
