"""`monkey apply --approved`: what the merged pull request agreed to, and of all else only what harms no one.

It is for the run of CI after a merge. The digest is in a status that the plan of the pull request's head set, with a
token of the same author. A comment could be edited by people; a status of ours cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import click

from monkey.apply.planning import PlanningResult, make_plan
from monkey.apply.world.world import World
from monkey.cli.review.approval import APPLY_STATUS, PLAN_STATUS, read_approved_digest
from monkey.cli.review.harm import find_harm
from monkey.cli.review.pull_review import PullReview, open_apply_review
from monkey.errors import ConcurrentApply, MonkeyError
from monkey.forge.forge_port import Forge
from monkey.plan.change import Plan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.text.inert_markdown import format_inline_code
from monkey.plan.text.markdown import format_markdown

#: Exit code where a part of the plan waits for a person.
WAITS = 3
#: How often a plan is made that another apply leaves behind.
_TRIES = 3


@dataclass
class ApprovedApply:
    """One apply of what a pull request agreed to."""

    review: PullReview
    forge: Forge
    #: The digest that was agreed to; None: there is none.
    agreed: str | None
    #: The digest of what waits for a person, and the sweeps that do, each with what applying it would do.
    digest: str = ""
    waiting: dict[str, list[str]] = field(default_factory=dict)
    done: str = "nothing to change"

    async def narrow(self, world: World, planned: PlanningResult, keep_stale: Sequence[str]) -> PlanningResult:
        """Return the plan, if it is the one that was agreed to; else one of its sweeps that need no consent."""
        full, found = planned.plan, compute_plan_digest(planned.plan)
        if planned.plan.changes:
            self.done = f"{found} applied"
        if found == self.agreed or not planned.plan.changes:
            return planned
        sources = {sweep.name: str(world.project.root / sweep.desired.source) for sweep in planned.plan.sweeps}
        harm = find_harm(planned.plan)
        while True:
            self.waiting |= harm
            rest = [source for name, source in sources.items() if name not in self.waiting]
            if not rest:
                planned = replace(planned, plan=replace(planned.plan, sweeps=(), fleets=(), gone=()), wanted=())
                break
            # Again: without these sweeps, machines of the others may need less. Of named specs, nothing is pruned.
            planned = await make_plan(world, rest, keep_stale)
            harm = find_harm(planned.plan)
            if not harm:
                break
        if self.waiting:
            names = [source for name, source in sources.items() if name in self.waiting]
            asked = (await make_plan(world, names, keep_stale)).plan if names else replace(full, sweeps=(), fleets=())
            self._ask(world.project.name, replace(asked, gone=full.gone))
        # What is left of fleets that no spec asks for goes without consent: nothing runs there.
        return replace(planned, plan=planned.plan.with_fleets((*planned.plan.fleets, *full.unwanted)))

    def _ask(self, project: str, plan: Plan) -> None:
        self.digest, text = compute_plan_digest(plan), format_markdown(plan, self.review.run)
        why = f"expected the plan `{self.agreed}`" if self.agreed else "expected a plan that was agreed to, found none"
        lines = [f"- {format_inline_code(name)} {', '.join(what)}" for name, what in self.waiting.items()]
        prune = "--prune " if any(gone.pruned for gone in plan.gone) else ""
        command = f"monkey apply {prune}--expect {self.digest}"
        ask = (
            f"### monkey apply: waits for a person\n\nAfter the merge, the plan is another one: {why}. These wait:\n\n"
        )
        ask += "\n".join(lines) + f"\n\nTo apply them as they are now: `{command}`\n\n"
        self.review.write(f"apply:{project}", ask + text)
        for name, what in self.waiting.items():
            click.echo(f"sweep {name} waits: it {', and '.join(what)}", err=True)
        click.echo(f"hint: {command}", err=True)

    def forget_plan(self) -> None:
        """Begin again: what was planned is not so any more."""
        self.digest, self.waiting, self.done = "", {}, "nothing to change"

    def report(self, code: int) -> int:
        """Set the commit's status, and return the exit code."""
        if self.waiting:
            names = ", ".join(self.waiting)
            self.review.set_status(APPLY_STATUS, "failure", f"{self.digest} waits for a person: {names}")
            return code or WAITS
        if code:
            self.review.set_status(APPLY_STATUS, "failure", "jobs failed")
        else:
            self.review.set_status(APPLY_STATUS, "success", self.done)
        return code


def add_approved_option(command: Callable[..., int]) -> Callable[..., int]:
    """Give `apply` the option `--approved`; the command gets what was approved as `approval`, None without it."""

    @click.option(
        "--approved",
        is_flag=True,
        help="In CI after a merge: apply what the pull request's plan was, else only what needs no consent.",
    )
    @wraps(command)
    def approved_command(*args: Any, approved: bool, **options: Any) -> int:
        if not approved:
            return command(*args, approval=None, **options)
        with _open_apply() as opened:
            for left in reversed(range(_TRIES)):
                try:
                    return opened.report(command(*args, approval=opened, **options))
                except ConcurrentApply as exc:
                    # A forge that knows no concurrency runs several at once, and no one starts this one again.
                    if not left:
                        raise
                    click.echo(f"{exc.message}: it is planned again", err=True)
                    opened.forget_plan()
            raise AssertionError("the last try returns or raises")

    return approved_command


@contextmanager
def _open_apply() -> Iterator[ApprovedApply]:
    """Find what was agreed to. Raises MonkeyError where no forge can be asked; sets the status of what fails within."""
    review = open_apply_review()
    forge = review.forge
    if forge is None:
        raise MonkeyError(
            f"--approved reads from a pull request what was agreed to, and {review.lacks}",
            hint="`monkey apply` by hand; or `--yes`, which agrees to all",
        )
    context = review.name_status(PLAN_STATUS)
    agreed = None if review.pull is None else read_approved_digest(forge, review.pull.commit, context)
    try:
        yield ApprovedApply(review, forge, agreed)
    except MonkeyError as exc:
        review.set_status(APPLY_STATUS, "failure", exc.message.partition("\n")[0])
        raise
