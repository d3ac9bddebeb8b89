"""Outputs of a CI step: written into the file that the runner names, never found again in what was printed."""

from __future__ import annotations

import os
from pathlib import Path

from monkey.errors import PlanError
from monkey.plan.change import Plan
from monkey.plan.digest import compute_plan_digest

#: Where GitHub, Gitea and Forgejo name the file. A line is `name=value`: a value of one line needs no delimiter.
_OUTPUT_VARIABLE = "GITHUB_OUTPUT"


def set_plan_outputs(plan: Plan) -> None:
    """Set the step's output `digest`, for `apply --expect`; it is hexadecimal digits alone."""
    path = os.environ.get(_OUTPUT_VARIABLE)
    if path and plan.observed:
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(f"digest={compute_plan_digest(plan)}\n")
        except OSError as exc:
            what = f"the step's output could not be set: {_OUTPUT_VARIABLE} names {path} ({exc.strerror})"
            raise PlanError(what, hint=f"run in a step of CI, or unset {_OUTPUT_VARIABLE}") from exc
