"""A sweep's preview: some of its jobs, under a name of its own, within the limits that the project sets."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import replace

from monkey.errors import PlanError
from monkey.plan.cost import format_dollars
from monkey.plan.desired import DesiredSweep
from monkey.plan.preview.row_choice import select_preview_rows
from monkey.spec.job.expires import Expiry
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.project.preview_limits import PreviewLimits
from monkey.spec.sweep.sweep_names import make_preview_name
from monkey.spec.yaml.units import format_duration

#: The lowest that a spec may have: whatever else there is to run comes first.
_PRIORITY = -1000


def limit_sweep(
    want: DesiredSweep, pull: int, limits: PreviewLimits, there: Collection[str], now: float
) -> DesiredSweep | None:
    """Return the preview of a sweep by a pull request; None where it has no job that no sweep has yet.

    `there`: ids of the jobs that sweeps have, as they were applied last. `now`: seconds since the epoch. The preview
    declares no equivalences: what they adopt would count for the whole project. Raises PlanError where it would run
    on no provider that previews may use, or needs a secret that they may not have.
    """
    lacking = [row for row, job in enumerate(want.table.ids) if job not in there]
    if not lacking:
        return None
    rows = select_preview_rows(want.table, lacking, limits.jobs)
    settings = _cap_settings(want, limits, now)
    return replace(
        want,
        name=make_preview_name(pull, want.name),
        settings=settings,
        table=_keep_rows(want.table, rows),
        equivalences=(),
        about=_describe(pull, limits, settings, (len(rows), len(lacking))),
    )


def _cap_settings(want: DesiredSweep, limits: PreviewLimits, now: float) -> SweepSettings:
    asked = want.settings
    providers = [name for name in asked.providers if name in limits.providers]
    if not providers:
        raise PlanError(
            f"{want.source}: expected a provider on which previews may run ({', '.join(limits.providers) or 'none'}), "
            f"found {', '.join(asked.providers)}",
            hint="`previews: {providers: […]}` in the monkey.yaml of the base names them; machines that a spec chooses "
            "are none of these",
        )
    if denied := [name for name in asked.secrets if name not in limits.secrets]:
        raise PlanError(
            f"{want.source}: expected no secret but those that previews may have "
            f"({', '.join(limits.secrets) or 'none'}), found {', '.join(denied)}",
            hint="`previews: {secrets: […]}` in the monkey.yaml of the base names them; no fork gets any",
        )
    early = asked.expires is not None and asked.expires.until(now) < now + limits.expires
    return replace(
        asked,
        providers=providers,
        max_concurrent_jobs=min(asked.max_concurrent_jobs or limits.max_concurrent_jobs, limits.max_concurrent_jobs),
        expires=asked.expires if early else Expiry(after=limits.expires),
        priority=_PRIORITY,
    )


def _keep_rows(table: JobTable, rows: Sequence[int]) -> JobTable:
    columns = {name: _keep_values(column, rows) for name, column in table.columns.items()}
    return JobTable([table.ids[row] for row in rows], columns)


def _keep_values(column: ParameterColumn, rows: Sequence[int]) -> ParameterColumn:
    """Return a column with the values of these rows alone: a revision holds what it runs."""
    used = sorted({column.index[row] for row in rows} - {ABSENT})
    places = {before: after for after, before in enumerate(used)} | {ABSENT: ABSENT}
    return ParameterColumn([column.values[at] for at in used], array("i", (places[column.index[row]] for row in rows)))


def _describe(pull: int, limits: PreviewLimits, settings: SweepSettings, counts: tuple[int, int]) -> str:
    """Return the sentence of a plan that says how much of what is run."""
    runs, lacking = counts
    jobs = "1 job" if lacking == 1 else f"{lacking:,} jobs"
    assert settings.expires is not None
    end = f"ends at {settings.expires.words()}"
    if settings.expires.after is not None:
        end = f"ends {format_duration(settings.expires.after)} after it is applied"
    cost = f", for at most {format_dollars(limits.max_cost)} of rent" if limits.max_cost is not None else ""
    return (
        f"preview of pull request {pull}: {runs:,} of {jobs} that no sweep has yet; "
        f"at most {settings.max_concurrent_jobs} at once on {', '.join(settings.providers)}; {end}{cost}"
    )
