"""Jobs of today under earlier recipes: what their ids would have been without what `equivalences` declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from monkey.plan.adoption.adopted_jobs import AdoptedJobs
from monkey.plan.adoption.declared_code import DeclaredCode, resolve_declared_code, shorten_hash
from monkey.plan.adoption.earlier_commands import is_same_command
from monkey.plan.adoption.final_results import FinalResults
from monkey.plan.desired import DesiredSweep
from monkey.plan.observed import ObservedProject
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.job_id import assign_job_ids, dump_canonical_json
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn
from monkey.spec.job.recipe import EarlierRecipe
from monkey.spec.parameters.include_exclude import is_same_value


class EquivalentJobs(NamedTuple):
    """The adoptions that `equivalences` lead to, and sentences about items that lead to none."""

    lots: list[AdoptedJobs]
    warnings: list[str]


@dataclass
class _Translation:
    """The way from today's jobs to those of an earlier recipe, by some of the spec's items."""

    earlier: EarlierRecipe
    #: Today's name of a parameter to its earlier name.
    names: dict[str, str] = field(default_factory=dict)
    #: Parameters that were added since, with the value that stands for none.
    added: dict[str, Any] = field(default_factory=dict)
    items: list[Equivalence] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def use(self, item: Equivalence, why: str) -> None:
        """Note the item that a part of the way stands on."""
        self.items += [item] if item not in self.items else []
        self.why.append(why)


def find_equivalent_jobs(
    want: DesiredSweep, rows: Sequence[int], observed: ObservedProject, finals: FinalResults
) -> EquivalentJobs:
    """Find finished jobs that the spec's `equivalences` let stand for jobs of these rows."""
    declared = resolve_declared_code(want, observed)
    lots: dict[str, AdoptedJobs] = {}
    left, useful, seen = list(rows), list[Equivalence](), set[tuple[str, str]]()
    for earlier in _list_newest_first(observed.recipes, want.name):
        way = _translate_recipe(earlier, want, declared)
        if way is None:
            continue
        useful += way.items
        # Many revisions differ in nothing that matters here.
        key = dump_canonical_json(earlier.recipe.to_json()), " ".join(sorted(earlier.parameters))
        found = _find_finished(want.table, left, way, finals) if key not in seen else {}
        seen.add(key)
        if found:
            why = _format_reason(want, way)
            codes = None if earlier.recipe.code == want.recipe.code else (earlier.recipe.code, want.recipe.code)
            results = {want.table.ids[row]: result for row, result in found.items()}
            before = lots[why].results if why in lots else {}
            lots[why] = AdoptedJobs(why, {**before, **results}, codes)
            left = [row for row in left if row not in found]
    return EquivalentJobs(list(lots.values()), _list_warnings(want, declared, useful) if left else [])


def _list_newest_first(recipes: Sequence[EarlierRecipe], sweep: str) -> Iterator[EarlierRecipe]:
    """Yield the recipes of the sweep itself first."""
    yield from (one for one in reversed(recipes) if one.sweep == sweep)
    yield from (one for one in reversed(recipes) if one.sweep != sweep)


def _translate_recipe(earlier: EarlierRecipe, want: DesiredSweep, declared: DeclaredCode) -> _Translation | None:
    """Return the way to an earlier recipe; None if it differs in more than is declared, or in nothing that is."""
    way, today = _Translation(earlier), want.recipe
    for item in want.equivalences:
        for old, new in item.renamed.items():
            if old in earlier.parameters and new not in earlier.parameters and new not in way.names:
                way.names[new] = old
                way.use(item, f"{old} was renamed to {new}")
        for name, value in item.default.items():
            if name not in earlier.parameters and name not in way.names:
                way.added[name] = value
                way.use(item, f"{name}={dump_canonical_json(value)} is what jobs had without it")
    if earlier.recipe.code != today.code:
        if (said := declared.items.get(earlier.recipe.code)) is None:
            return None
        way.use(said, f"code {shorten_hash(earlier.recipe.code)} stands for this one")
    renamed = {old: new for new, old in way.names.items()}
    same = (
        bool(way.items)
        and replace(earlier.recipe, code=today.code, command=today.command) == today
        and is_same_command(earlier.recipe.command, today.command, renamed, way.added)
    )
    return way if same else None


def _find_finished(table: JobTable, rows: Sequence[int], way: _Translation, finals: FinalResults) -> dict[int, str]:
    """Return the rows whose job has finished under the earlier recipe, each with the job whose result counts."""
    names = {name: way.names.get(name, name) for name in table.columns if name not in way.added}
    if not _may_fit(table, names, way.earlier):
        return {}
    for name, value in way.added.items():
        rows = _select_rows(table.columns[name], rows, value) if name in table.columns else rows
    columns = {
        names[name]: ParameterColumn(column.values, [column.index[row] for row in rows])
        for name, column in table.columns.items()
        if name in names
    }
    before = assign_job_ids(JobTable([""] * len(rows), columns), way.earlier.recipe).ids
    results = zip(rows, map(finals.find, before), strict=True)
    return {row: result for row, result in results if result is not None}


def _may_fit(table: JobTable, names: Mapping[str, str], earlier: EarlierRecipe) -> bool:
    """May the earlier revision have had a job with these parameters? One that it lacks must be absent somewhere."""
    taken = set(names.values())
    nested = any(other.startswith(f"{name}.") for name in taken for other in taken)
    return (
        len(taken) == len(names)
        and not nested
        and all(old in earlier.parameters or ABSENT in table.columns[new].index for new, old in names.items())
    )


def _select_rows(column: ParameterColumn, rows: Sequence[int], value: Any) -> list[int]:
    """Return the rows that have this value of the parameter, or none at all."""
    fits = {at for at, other in enumerate(column.values) if is_same_value(other, value)} | {ABSENT}
    return [row for row in rows if column.index[row] in fits]


def _format_reason(want: DesiredSweep, way: _Translation) -> str:
    lines = ", ".join(str(item.line) for item in sorted(way.items, key=lambda item: item.line))
    return f"{', '.join(way.why)} (equivalences, {want.source}:{lines})"


def _list_warnings(want: DesiredSweep, declared: DeclaredCode, useful: Sequence[Equivalence]) -> list[str]:
    """Say of each item that leads to no earlier recipe why, while jobs are left to be run."""
    other = "no earlier revision differs in this alone: another part of its recipe has changed, too"
    return [
        f"warning: {want.source}:{item.line}: equivalences: {declared.problems.get(item.line, other)}"
        for item in want.equivalences
        if item not in useful
    ]
