"""Asking before machines are rented: by `apply`, and by what gives sweeps more time or opens them again."""

from __future__ import annotations

import sys

import click

from monkey.apply.cost_limits import Agree, refuse_cost
from monkey.cli.terminal.prompts import ask_consent
from monkey.errors import MonkeyError
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
