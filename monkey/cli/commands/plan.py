"""`monkey plan`: what apply would do."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from monkey.apply.planning import PlanningResult, make_plan, plan_without_store
from monkey.apply.tree_planning import plan_changes_since, plan_merge_result
from monkey.atomic_write import write_named_file
from monkey.ci_run import read_ci_run
from monkey.cli.ci.step_outputs import set_plan_outputs
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.session import check_one_format, find_project, json_option, project_file_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json
from monkey.errors import MonkeyError
from monkey.plan.change import Plan
from monkey.plan.saved_plan import dump_saved_plan
from monkey.plan.text.plan_document import serialize_plan

if TYPE_CHECKING:
    from monkey.apply.world.world import World
    from monkey.cli.review.plan_comment import PlanComment

#: Number of a pull request at most.
_MAX_PULL = 10**9

#: `plan` and `apply` alike.
keep_stale_option = click.option(
    "--keep-stale",
    "keep_stale",
    metavar="KIND",
    multiple=True,
    help="Keep results that are stale only for this reason (code, command, env, …); `nothing` gives up adopted ones.",
)

#: `plan` and `apply` alike.
preview_option = click.option(
    "--preview",
    metavar="NUMBER",
    type=click.IntRange(1, _MAX_PULL),
    help="Of each changed sweep, run some jobs for this pull request, within `previews:` of monkey.yaml.",
)


#: `plan` and `apply` alike.
prune_option = click.option("--prune", is_flag=True, help="Cancel sweeps whose spec is gone from this branch.")


def _add_comment_option(command: Callable[..., int]) -> Callable[..., int]:
    """Give the command `--comment`: it gets the comment to write as `comment`, None without it."""

    @click.option("--comment", is_flag=True, help="Write the plan to CI's pull request, as a comment and a status.")
    @wraps(command)
    def commented(*args: Any, comment: bool, **options: Any) -> int:
        if not comment:
            return command(*args, comment=None, **options)
        from monkey.cli.review.plan_comment import open_comment

        with open_comment() as opened:
            return command(*args, comment=opened, **options)

    return commented


@click.command("plan")
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@click.option("-o", "--output", metavar="FILE", help="Save the plan; `monkey apply FILE` applies exactly this.")
@json_option
@click.option("--markdown", is_flag=True, help="Print Markdown, for a comment on a pull request.")
@click.option(
    "--detailed-exitcode", is_flag=True, help="Exit with 0: no changes, 1: error, 2: changes, or refused ones."
)
@click.option("--all", "everything", is_flag=True, help="Show what stays unchanged, too.")
@click.option(
    "--no-store",
    is_flag=True,
    help="Ask no store, host or cloud, and send nothing: for a branch that is not trusted.",
)
@click.option(
    "--changed-since", "since", metavar="REF", help="Plan only specs that differ from where this branch left REF."
)
@click.option("--onto", metavar="REF", help="Plan what a merge of this commit into REF would be.")
@preview_option
@keep_stale_option
@prune_option
@project_file_option
@_add_comment_option
def plan_command(
    specs: tuple[str, ...],
    output: str | None,
    as_json: bool,
    markdown: bool,
    detailed_exitcode: bool,
    everything: bool,
    no_store: bool,
    since: str | None,
    onto: str | None,
    preview: int | None,
    keep_stale: tuple[str, ...],
    prune: bool,
    comment: PlanComment | None,
) -> int:
    """Show what apply would change for SPECs (default: all in specs/); changes nothing.

    \b
    +  new job        ~  stale job, and why    =  kept        -  removed
    *  setting        ↑  upload                @  machines    !  problem
    $  maximum cost of rented machines    ?  job, new or not (--no-store)
    """
    check_one_format(**{"--json": as_json, "--markdown": markdown})
    show = partial(_shown, as_json=as_json, as_markdown=markdown, everything=everything)
    if no_store:
        _check_alone(
            **{"-o": output, "--detailed-exitcode": detailed_exitcode, "--keep-stale": keep_stale, "--prune": prune},
            **{"--changed-since": since, "--onto": onto, "--preview": preview},
        )
        return _show_without_store(specs, show, comment)
    if preview is not None:
        refuse_beside_preview(
            **{"-o": output, "--keep-stale": keep_stale, "--prune": prune, "--changed-since": since, "--onto": onto}
        )
        changes = _show_preview(preview, specs, show)
        return 2 if detailed_exitcode and changes else 0
    order = _PlanOrder(specs, since, onto, keep_stale, prune)
    order.check(output)
    planned = run_in_world(order.plan, remember=False)
    if output is not None:
        _save(planned, output, prune=prune)
    _show_observed(planned.plan, show)
    if output is not None and not (as_json or markdown):
        click.echo(f"Saved. To do exactly this: monkey apply {output}")
    if comment is not None:
        comment.show_plan(planned.plan)
    return 2 if detailed_exitcode and _differs(planned.plan) else 0


def _differs(plan: Plan) -> bool:
    """Tell whether the store differs from what the branch wants: a sweep that is refused does, too."""
    return plan.changes or len(plan.accepted) < len(plan.sweeps)


def _show_observed(plan: Plan, show: Callable[[Plan], str]) -> None:
    click.echo(show(plan))
    set_plan_outputs(plan)


def _show_without_store(specs: Sequence[str], show: Callable[[Plan], str], comment: PlanComment | None) -> int:
    plan = plan_without_store(find_project(), specs)
    click.echo(show(plan))
    if comment is not None:
        comment.show_plan(plan)
    return 0


def _show_preview(pull: int, specs: Sequence[str], show: Callable[[Plan], str]) -> bool:
    """Show the plan of a preview; return whether it changes anything."""
    from monkey.apply.previews import check_preview, plan_preview

    check_preview(find_project(), pull)
    planned = run_in_world(lambda world: plan_preview(world, pull, specs), remember=False)
    _show_observed(planned.plan, show)
    return planned.plan.changes


class _PlanOrder(NamedTuple):
    specs: Sequence[str]
    since: str | None
    onto: str | None
    keep_stale: Sequence[str]
    prune: bool

    def check(self, output: str | None) -> None:
        """Raise UsageError for options that exclude each other; `output`: where the plan is saved."""
        check_prune(self.specs, prune=self.prune)
        given = {"--changed-since": self.since, "--onto": self.onto, "names of specs": self.specs, "-o": output}
        if self.since is not None or self.onto is not None:
            check_one_format(**{name: bool(value) for name, value in given.items()})

    async def plan(self, world: World) -> PlanningResult:
        """Plan for the tree, or the part of it, that was asked for."""
        if self.since is not None:
            return await plan_changes_since(world, self.since, self.keep_stale, prune=self.prune)
        if self.onto is not None:
            return await plan_merge_result(world, self.onto, self.keep_stale, prune=self.prune)
        return await make_plan(world, self.specs, self.keep_stale, prune=self.prune)


def check_prune(specs: Sequence[str], *, prune: bool) -> None:
    """Raise UsageError for `--prune` in a plan for some specs, which says nothing of the others."""
    if prune and specs:
        raise click.UsageError("--prune and names of specs exclude each other: it looks for sweeps without any spec")


def refuse_beside_preview(**others: object) -> None:
    """Raise UsageError for options that a preview does not have."""
    if given := [name for name, value in others.items() if value]:
        raise click.UsageError(f"--preview and {given[0]} exclude each other: a preview is planned where it is applied")


def _check_alone(**others: object) -> None:
    """Raise UsageError for options that need the store's word on what is new."""
    if given := [name for name, value in others.items() if value]:
        raise click.UsageError(f"--no-store and {given[0]} exclude each other: only the store knows what is new")


def _shown(plan: Plan, *, as_json: bool, as_markdown: bool, everything: bool) -> str:
    if as_json:
        return dump_json(serialize_plan(plan), indent=2)
    if as_markdown:
        from monkey.plan.text.markdown import format_markdown

        return format_markdown(plan, read_ci_run()).rstrip("\n")
    return "\n".join(format_plan(plan, detect_terminal(), everything=everything))


def _save(planned: PlanningResult, output: str, *, prune: bool) -> None:
    root, target = find_project().root, Path(output)
    if any(want.code.would_take(target) for want in planned.wanted):
        raise MonkeyError(
            f"{output!r} would become part of the project's code, and the plan be stale at once",
            hint="call it plan.json or NAME.plan.json, which are code only where `code.include` names them; or save it "
            "outside of the project",
        )
    text = dump_saved_plan(planned.plan, [os.path.relpath(path, root) for path in planned.files], prune=prune)
    try:
        write_named_file(target, text)
    except OSError as exc:
        raise MonkeyError(f"the plan cannot be saved to {output!r}: {exc.strerror}") from exc
