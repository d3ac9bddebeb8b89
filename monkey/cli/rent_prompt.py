"""Asking before machines are rented: by `apply`, and by what gives sweeps more time or opens them again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from monkey.cli.terminal.prompts import agreed
from monkey.errors import MonkeyError

if TYPE_CHECKING:
    from monkey.apply.cost_limits import Agree
    from monkey.plan.cost import Cost

yes_option = click.option("-y", "--yes", is_flag=True, help="Rent machines for it without asking.")


def agreeing(*, yes: bool) -> Agree:
    """Return what asks whether machines may be rented; without a terminal only `yes` agrees."""

    def agree(costs: dict[str, Cost]) -> None:
        from monkey.apply.cost_limits import refuse
        from monkey.plan.cost import rented_text

        if yes:
            return
        if not sys.stdin.isatty():
            refuse(costs)
        if not agreed(f"Rent {rented_text(costs)}?"):
            raise MonkeyError("nothing was changed")

    return agree
