"""What the page shows of one job: recipe, attempts, what it measured and left, and what its result came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monkey.apply.inspect.attempt_records import read_attempts
from monkey.apply.inspect.result_facts import read_result_facts
from monkey.apply.world.world import World
from monkey.protocol.entries import EndEntry, TornEntry
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.protocol.status.store_snapshot import SweepView
from monkey.results.differences.value_change import mask_value
from monkey.spec.command.command import show_command
from monkey.spec.job.job_table import ParameterValue
from monkey.spec.project.grafana_links import make_grafana_link
from monkey.web.sweep_table import STATES, make_row


async def serialize_job_page(world: World, view: SweepView, job: str) -> dict[str, Any]:
    """Return all about a job of the sweep. Raises StoreError."""
    revision, seen = view.state.revision, view.view(job)
    assert revision is not None  # the job was found in it
    parameters = revision.table.parameters(revision.rows[job])
    attempts = await read_attempts(world, view, job)
    facts = await read_result_facts(world, attempts)
    row = make_row(view, job)
    return {
        "job": job,
        "sweep": view.state.name,
        **row._asdict(),
        "state": str(STATES[row.state]),
        "reason": seen.reason or "",
        "agent": seen.agent,
        "exit_code": seen.exit_code,
        "ended": seen.ended,
        "failures": seen.failures,
        "goal": seen.goal,
        "shared": seen.shared,
        "adopts": revision.adopted.get(job, ""),
        "summary": seen.metrics,
        "usage": seen.usage,
        "outputs": [
            {"path": path, "sha256": sha, "url": f"{world.at.url}/{view.locate_output(world.keys, seen, path)}"}
            for path, sha in seen.outputs.items()
        ],
        "log_tail": seen.log_tail,
        "dashboard": make_grafana_link(world.project.grafana, view.state.name, job, seen.started or 0.0),
        "attempts": _serialize_attempts(attempts),
        "facts": {"sha256": facts.sha256, "trouble": facts.trouble, **facts.facts} if facts else None,
        "configuration": _serialize_configuration(view, parameters),
        "varying": sorted(revision.table.varying),
    }


def _serialize_configuration(view: SweepView, parameters: dict[str, ParameterValue]) -> dict[str, Any]:
    """Return what two jobs may be compared by, one text or value a name."""
    revision = view.state.revision
    assert revision is not None  # the job was found in it
    # A report is sent to others; so what `monkey diff` does not show stays hidden here.
    recipe, hidden = revision.recipe, revision.settings.secrets
    return {
        "parameters": parameters,
        "recipe": {
            "command": mask_value("command", show_command(recipe.command, parameters)),
            "code": recipe.code,
            "commit": str((revision.git or {}).get("commit", "")),
            **{f"dataset {name}": sha for name, sha in recipe.datasets.items()},
            **recipe.environment,
            **{f"env {name}": mask_value(name, value, hidden) for name, value in recipe.env.items()},
            **({"image": recipe.image} if recipe.image else {}),
        },
    }


def _serialize_attempts(found: Sequence[AttemptRecord]) -> list[dict[str, Any]]:
    return [
        {
            "number": one.number,
            "agent": one.claim.agent,
            "sweep": one.claim.sweep,
            "claimed": one.claim.at or None,
            **_serialize_end(one),
        }
        for one in found
    ]


def _serialize_end(one: AttemptRecord) -> dict[str, Any]:
    end = one.after
    if isinstance(end, EndEntry):
        told = {"outcome": str(end.outcome), "reason": end.reason, "seconds": end.seconds}
        return {**told, "prepared": end.prepared, "ended": end.at or None}
    if end is None:
        return {"outcome": "", "reason": "", "seconds": None}
    why = "its end was emptied or cut short" if isinstance(end, TornEntry) else "its agent was lost"
    return {"outcome": "lost", "reason": why, "seconds": one.lost_seconds or None}
