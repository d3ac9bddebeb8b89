"""`monkey apply`: make it so, and watch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from monkey.apply.agent_environment import renew_idle_agents
from monkey.apply.ci_refusals import check_work_stays
from monkey.apply.execute import execute_plan
from monkey.apply.history.seen_commits import record_seen_commits
from monkey.apply.planning import PlanningResult, make_plan, read_saved, remake_plan
from monkey.apply.previews import check_preview, converge_previews, plan_preview
from monkey.apply.sync.unattended_apply import leave_fruitless_fleets
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.apply.world.world import World
from monkey.ci_run import is_ci
from monkey.cli.ci.step_outputs import set_plan_outputs
from monkey.cli.commands.plan import (
    check_prune,
    keep_stale_option,
    preview_option,
    prune_option,
    refuse_beside_preview,
)
from monkey.cli.exit_codes import BROKEN_PIPE, INTERRUPTED, UNEXPECTED_PLAN
from monkey.cli.links.page_link import print_page_link
from monkey.cli.order_reports import print_order
from monkey.cli.render.apply_outcome import format_detached
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.rent_prompt import ask_plan_consent
from monkey.cli.review.approved_apply import ApprovedApply, add_approved_option
from monkey.cli.session import find_project, project_file_option, run_in_world
from monkey.cli.terminal.lasting_output import ignore_lost_readers, is_output_read
from monkey.cli.terminal.text import detect_terminal, flatten_text
from monkey.cli.watching import watch_to_end
from monkey.errors import MonkeyError, SigningError, StoreError, UnexpectedPlan
from monkey.plan.change import Plan
from monkey.plan.commits.refusals import check_refusals
from monkey.plan.digest import DIGEST_DIGITS, check_plan_digest, find_applied_sweeps, is_done
from monkey.plan.text.lines import LineMark, format_gone_sweeps
from monkey.plan.work import find_remaining_work


@dataclass
class ApplyOrder:
    """What was asked for on the command line, and how far it came."""

    specs: Sequence[str]
    keep_stale: Sequence[str]
    yes: bool = False
    detach: bool = False
    force: str = ""
    prune: bool = False
    #: The digest of the plan that was agreed to.
    expect: str | None = None
    #: The pull request that is previewed.
    preview: int | None = None
    #: What a pull request agreed to, which limits what is applied; None: all is.
    approval: ApprovedApply | None = None
    #: Sweeps that are applied and at work: from here on an interrupt only detaches.
    watched: list[str] = field(default_factory=list)


def _check_form(context: click.Context, parameter: click.Parameter, digest: str | None) -> str | None:
    if digest is not None and not re.fullmatch(rf"[0-9a-f]{{{DIGEST_DIGITS}}}", digest):
        raise click.BadParameter(f"expected {DIGEST_DIGITS} hexadecimal digits, as `monkey plan` prints: {digest!r}")
    return digest


@click.command("apply")
@click.argument("specs", nargs=-1, metavar="[SPEC]... | [PLAN.json]")
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask before stopping running jobs or renting machines.",
)
@click.option("-d", "--detach", is_flag=True, help="Return as soon as the jobs are queued; do not watch.")
@click.option(
    "--force",
    metavar="REASON",
    default="",
    help="Change sweeps that are refused, too: from an older commit, or another branch. The reason is kept.",
)
@preview_option
@keep_stale_option
@prune_option
@click.option(
    "--expect",
    metavar="DIGEST",
    callback=_check_form,
    help="Apply only if the plan has this digest, and do not ask: it was agreed to.",
)
@project_file_option
@add_approved_option
def apply_command(
    specs: tuple[str, ...],
    yes: bool,
    detach: bool,
    force: str,
    preview: int | None,
    keep_stale: tuple[str, ...],
    prune: bool,
    expect: str | None,
    approval: ApprovedApply | None,
) -> int:
    """Apply SPECs (default: all in specs/), and watch until their jobs are done.

    PLAN.json, saved by `monkey plan -o`, is applied exactly as shown, or refused. Ctrl-C while watching detaches: the
    jobs continue. Ctrl-C before that keeps what was done so far. Exits with 1 if jobs failed, with 3 if the plan is not
    the one that --expect names.
    """
    check_prune(specs, prune=prune)
    order = ApplyOrder(specs, keep_stale, yes, detach, force, prune, expect, preview, approval)
    if preview is not None:
        saved = any(spec.endswith(".json") for spec in specs)
        refuse_beside_preview(
            **{"--keep-stale": keep_stale, "--prune": prune, "--expect": expect, "--force": force, "PLAN.json": saved}
        )
        check_preview(find_project(), preview)
    with ignore_lost_readers():
        try:
            return run_in_world(lambda world: _apply(world, order), reports=True)
        except KeyboardInterrupt:
            if not order.watched:
                raise
            read = is_output_read()
            click.echo("\n".join(["", *format_detached(order.watched)]), err=not read)
            return INTERRUPTED if read else BROKEN_PIPE


async def _apply(world: World, order: ApplyOrder) -> int:
    for fleet in world.local_fleets:
        fleet.prepare()
    if order.preview is not None:
        planned = await plan_preview(world, order.preview, order.specs)
    else:
        planned = await _planned(world, order)
        if order.approval is not None:
            planned = await order.approval.narrow(world, planned, order.keep_stale)
        if not planned.plan.sweeps:
            return 0
    fruitless: dict[str, str] = {}
    if _is_unattended(world, order):
        planned, fruitless = await leave_fruitless_fleets(world, planned)
    if order.expect is not None:
        _check_expected(planned.plan, order.expect)
    if order.detach:
        check_work_stays(world.project, planned.plan)
    if planned.plan.changes:
        _show(planned)
        ask_plan_consent(planned.plan, yes=_has_consent(planned.plan, order))
        await world.begin()
    else:
        _warn(planned.plan)
    await renew_idle_agents(world, planned.plan, print_order)
    if planned.plan.changes:
        await execute_plan(world, planned.plan, planned.wanted, print_order)
    if order.preview is not None:
        await converge_previews(world, planned.plan)
        if not planned.wanted:
            click.echo("Nothing to preview: sweeps have all jobs of these specs.")
            return 0
    elif world.store is not None:
        await _record_seen(world, planned)
    goes_on = planned.plan.continued
    at_work = [one.name for one in planned.plan.accepted if find_remaining_work(one).count or one.name in goes_on]
    code = await _finish(world, planned, order, at_work)
    for name, why in fruitless.items():
        click.echo(f"warning: sweep {name}: {flatten_text(why)}", err=True)
    check_refusals(planned.plan, shown=planned.plan.changes)
    return code or int(bool(fruitless))


def _is_unattended(world: World, order: ApplyOrder) -> bool:
    """Tell whether no person sees the plan: CI applies it by --yes, and does not watch."""
    agreed = order.expect is not None or any(name.endswith(".json") for name in order.specs)
    return world.unattended and order.yes and order.detach and not agreed


async def _record_seen(world: World, planned: PlanningResult) -> None:
    """Note the commit of what stays as it is; that this fails is no failure of what was asked for."""
    try:
        await record_seen_commits(world, planned)
    except (StoreError, SigningError) as exc:
        click.echo(f"warning: the commit could not be noted: {flatten_text(exc.message)}", err=True)


async def _finish(world: World, planned: PlanningResult, order: ApplyOrder, at_work: list[str]) -> int:
    """Watch what was applied to its end, or leave it; return the exit code."""
    if order.detach:
        return await _detach(world, planned, at_work)
    order.watched = at_work

    def looked(progress: Sequence[SweepProgress]) -> None:
        order.watched = [one.name for one in progress if one.unfinished]
        if order.watched and not is_output_read():
            raise KeyboardInterrupt  # as a person would, who sees no more of the watch

    names = [sweep.name for sweep in planned.plan.accepted]
    if not names:
        return 0
    print_page_link(world, names)
    return await watch_to_end(world, names, looked, changed=planned.plan.changes)


async def _detach(world: World, planned: PlanningResult, names: Sequence[str]) -> int:
    if not planned.plan.changes:
        click.echo("Nothing to change.")
        return 0
    await wait_for_agents(world.reader(), [world.fleet(part.fleet) for part in planned.plan.fleets if part.jobs])
    if is_ci():
        from monkey.cli.review.sweep_statuses import set_first_statuses  # it brings an HTTP client

        await set_first_statuses(world)
    click.echo("\n".join(format_detached(names)) if names else "Applied; nothing is left to run.")
    print_page_link(world, names)
    return 0


async def _planned(world: World, order: ApplyOrder) -> PlanningResult:
    saved = [name for name in order.specs if name.endswith(".json")]
    if not saved:
        return await make_plan(world, order.specs, order.keep_stale, prune=order.prune, force=order.force)
    if len(order.specs) > 1 or order.keep_stale or order.force:
        raise MonkeyError("a saved plan is applied alone, as it was saved", hint=f"`monkey apply {saved[0]}`")
    return await remake_plan(world, read_saved(Path(saved[0])))


def _show(planned: PlanningResult) -> None:
    click.echo("\n".join([*format_plan(planned.plan, detect_terminal()), ""]))
    set_plan_outputs(planned.plan)


def _check_expected(plan: Plan, digest: str) -> None:
    """Raise UnexpectedPlan unless the plan has this digest; a person, or a review, agreed to no other.

    A plan that was applied already is no error: a run of CI that is repeated does nothing.
    """
    if is_done(plan, digest):
        click.echo(f"The plan {digest} was applied already: {', '.join(find_applied_sweeps(plan, digest))}.")
        return
    try:
        check_plan_digest(plan, digest)
    except UnexpectedPlan as exc:
        exc.exit_code = UNEXPECTED_PLAN
        raise


def _warn(plan: Plan) -> None:
    """Say what should be known of a plan that is not shown."""
    gone = [line.text for line in format_gone_sweeps(plan) if line.mark is LineMark.MEND]
    for warning in (*plan.warnings, *gone):
        click.echo(f"warning: {warning}", err=True)


def _has_consent(plan: Plan, order: ApplyOrder) -> bool:
    """Say whether someone agreed already to what is stopped and rented.

    A preview stops none but its own jobs, and its cost is within `previews:` of monkey.yaml: that is consent.
    """
    agreed = order.yes or order.expect is not None or order.approval is not None
    return agreed or (order.preview is not None and not plan.uprooted)
