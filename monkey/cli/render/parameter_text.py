"""The parameters of a job, as people read them."""

from __future__ import annotations

from collections.abc import Mapping

from monkey.cli.terminal.text import flatten_text
from monkey.protocol.status.store_snapshot import SweepView
from monkey.spec.command.command import format_argument
from monkey.spec.job.job_table import ParameterValue


def find_job_parameters(view: SweepView, job: str) -> dict[str, ParameterValue]:
    """Return the parameters of a job of the sweep; none where the sweep does not have it."""
    revision = view.state.revision
    return revision.table.parameters(revision.rows[job]) if revision and job in revision.rows else {}


def format_parameters(parameters: Mapping[str, ParameterValue]) -> str:
    """Return "lr=0.1 seed=3", each value as the job got it."""
    return " ".join(
        f"{flatten_text(name)}={flatten_text(format_argument(value)) or repr('')}" for name, value in parameters.items()
    )
