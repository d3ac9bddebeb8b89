"""Asking before machines are rented or jobs stopped: by `apply`, and by what gives sweeps more time or opens them."""

from __future__ import annotations

import sys

import click

from monkey.apply.cost_limits import Agree, refuse_cost
from monkey.cli.terminal.lasting_output import is_output_read
from monkey.cli.terminal.prompts import ask_consent
from monkey.errors import MonkeyError
from monkey.plan.change import Plan
from monkey.plan.cost import FleetCost, format_rentals

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask before renting machines.")


def make_rent_prompt(*, yes: bool) -> Agree:
    """Return what asks whether machines may be rented; without a terminal only `yes` agrees."""

    def agree(costs: dict[str, FleetCost]) -> None:
        if yes:
            return
        if not sys.stdin.isatty():
            refuse_cost(costs)
        if not ask_consent(f"Rent {format_rentals(costs)}?"):
            raise MonkeyError("nothing was changed")

    return agree


def ask_plan_consent(plan: Plan, *, yes: bool) -> None:
    """Ask before running jobs are stopped, whose work since the last checkpoint is lost, and before money is spent.

    Raises MonkeyError where no one agrees.
    """
    if yes:
        return
    costs = {part.fleet: part.cost for part in plan.rented if part.cost}
    asked = [("stop", stopped)] if (stopped := _list_stopped(plan)) else []
    if pruned := [gone.name for gone in plan.gone if gone.pruned]:
        asked.append(("cancel", f"{', '.join(pruned)}, whose spec is gone"))
    asked += [("rent", format_rentals(costs))] if costs else []
    if asked and not (sys.stdin.isatty() and (sys.stderr.isatty() or is_output_read())):
        would = ", and ".join(f"{verb} {what}" for verb, what in asked)
        raise MonkeyError(f"applying would {would}", hint="--yes agrees to that")
    for verb, what in asked:
        if not ask_consent(f"{verb.capitalize()} {what}?"):
            raise MonkeyError("nothing was applied")


def _list_stopped(plan: Plan) -> str:
    """Return in words which running jobs applying stops; "" for none."""
    parts = []
    if count := plan.released:
        parts.append(
            "1 running job that is no longer wanted"
            if count == 1
            else f"{count:,} running jobs that are no longer wanted"
        )
    if count := plan.uprooted:
        parts.append(f"{count:,} running job{'s' * (count != 1)} on machines that go")
    return ", and ".join(parts)
