"""Results in Python, for notebooks and scripts: `monkey.Project(".").sweep("digits").results()`.

Each call reads the store once, and returns what was there then. It works where an event loop runs already, as in
Jupyter. pyarrow and pandas are imported only where results are asked for in their form.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from monkey.apply.inspect.result_facts import read_sweep_facts
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World, open_world
from monkey.errors import MonkeyError
from monkey.protocol.sweeps.sweep_log import list_sweeps
from monkey.results.causes.importance import ParameterImportance, rank_parameters
from monkey.results.curves.curve_reader import CurveReader
from monkey.results.curves.step_values import read_step_values
from monkey.results.formats.arrow_table import make_arrow_table
from monkey.results.result_filter import add_facts, filter_results, needs_facts
from monkey.results.result_rows import ResultRow, Results, gather_results
from monkey.spec.job.job_table import ParameterValue
from monkey.spec.project.project import STORE_VARIABLE, load_project
from monkey.transfer.code.git_files import read_origin_url

if TYPE_CHECKING:
    import pandas
    import pyarrow

_T = TypeVar("_T")


@dataclass(frozen=True)
class JobResult:
    """One job: what it was run with, and what came of it."""

    job: str
    #: "succeeded", "failed", "running", "queued", "stopped", "cancelled", "paused", "expired" or "frozen".
    state: str
    parameters: Mapping[str, ParameterValue]
    #: Metric to the one value that stands for the job; NaN where that is not finite.
    metrics: Mapping[str, float]
    #: Metric to its last, min, max, step and more.
    summary: Mapping[str, Mapping[str, Any]]
    seconds: float | None
    attempt: int
    reason: str | None
    #: The machine of its newest attempt; "" while that is not known.
    host: str
    #: The signature of its failure; "" for a job that did not fail.
    signature: str
    #: cpus, memory_bytes, gpu_percent, gpu_memory_bytes, as far as they are known.
    usage: Mapping[str, float]
    #: Does it count in means, ranks and "best"?
    counts: bool
    diverged: bool
    #: Metric to the step of its value, None for a value without one; {} where values are the last ones.
    steps: Mapping[str, int | None]


class SweepResults(Sequence[JobResult]):
    """The jobs of a sweep, best first."""

    def __init__(self, results: Results) -> None:
        """Keep what was read; rows are made when they are asked for."""
        self._results = results

    @property
    def metric(self) -> str | None:
        """The metric that ranks; None where the spec names none."""
        return self._results.metric

    @property
    def best(self) -> JobResult | None:
        """The best job that counts; None without a metric, or where no job has a value."""
        found = self._results.best
        return _make_job_result(found) if found else None

    def rank_parameters(self) -> list[ParameterImportance]:
        """Return how much each parameter mattered for the best jobs. Raises MonkeyError for too few jobs."""
        return rank_parameters(self._results)

    def to_arrow(self) -> pyarrow.Table:
        """Return a table with the columns of `results --csv`. Raises MonkeyError without pyarrow."""
        return make_arrow_table(self._results)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the same as a data frame. Raises MonkeyError without pyarrow or pandas."""
        try:
            import pandas  # noqa: F401 - Arrow needs it, and says less where it is missing
        except ModuleNotFoundError as exc:
            raise MonkeyError("expected pandas, which is not installed here", hint="pip install pandas") from exc
        return self.to_arrow().to_pandas()

    @overload
    def __getitem__(self, at: int) -> JobResult: ...
    @overload
    def __getitem__(self, at: slice) -> SweepResults: ...
    def __getitem__(self, at: int | slice) -> JobResult | SweepResults:
        """Return the job of that rank, 0 for the best, or those of a slice."""
        if isinstance(at, slice):
            return SweepResults(self._results.choose(self._results.order[at]))
        return _make_job_result(self._results.rows[at])

    def __iter__(self) -> Iterator[JobResult]:
        """Yield the jobs, best first."""
        return map(_make_job_result, self._results.rows)

    def __len__(self) -> int:
        """Return how many jobs there are."""
        return len(self._results.order)

    def __repr__(self) -> str:
        """Say how many jobs there are, and the best value."""
        best = self.best
        value = f", best {self.metric} {best.metrics[self.metric]:.5g}" if best and self.metric else ""
        return f"<results of {len(self):,} jobs{value}>"


class SweepHandle:
    """One sweep of a project."""

    def __init__(self, project: ProjectHandle, name: str) -> None:
        """Name the sweep; nothing is read yet."""
        self.project, self.name = project, name

    def results(self, where: str | None = None, *, best: bool = False, step: int | None = None) -> SweepResults:
        """Read the jobs of the newest revision; `where`, `best`, `step`: as in `monkey results`.

        Raises NotFound, StoreError, MonkeyError for a condition that cannot be read.
        """
        return self.project.run(lambda world: self._read(world, where, best, step))

    async def _read(self, world: World, where: str | None, best: bool, step: int | None) -> SweepResults:
        view = find_sweep(await world.reader().read(), self.name)
        revision = view.state.revision
        assert revision is not None  # find_sweep sees to it
        results = gather_results(revision.table, revision.settings, view.jobs, "best" if best else None)
        if step is not None or results.take == "best":
            reader = CurveReader(world.at, world.keys)
            results = await read_step_values(results, reader, revision.adopted, step)
        if where is not None:
            facts = await read_sweep_facts(world, view) if needs_facts(where) else {}
            results = filter_results(add_facts(results, facts), where)
        return SweepResults(results)

    def __repr__(self) -> str:
        """Say which sweep it is."""
        return f"<sweep {self.name!r} of {self.project.name}>"


class ProjectHandle:
    """A project, by a directory in it: the way from Python to its store. Nothing is written there."""

    def __init__(self, path: str | os.PathLike[str] = ".", *, store: str | None = None) -> None:
        """Find the monkey.yaml above `path`; `store`: another store than it names. Raises SpecError."""
        chosen = store or os.environ.get(STORE_VARIABLE)
        self._project = load_project(Path(path), None, chosen, read_origin_url)

    @property
    def name(self) -> str:
        """The project's name."""
        return self._project.name

    def sweep(self, name: str) -> SweepHandle:
        """Return a sweep by its name."""
        return SweepHandle(self, name)

    def sweeps(self) -> list[str]:
        """Return the names of all sweeps that were ever applied. Raises StoreError."""
        return self.run(lambda world: list_sweeps(world.at, world.keys))

    def run(self, work: Callable[[World], Coroutine[Any, Any, _T]]) -> _T:
        """Open the store, do the work, and close it: in a thread of its own where an event loop runs in this one."""

        async def inside() -> _T:
            async with open_world(self._project, remember=False) as world:
                return await work(world)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(inside())
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(asyncio.run, inside()).result()

    def __repr__(self) -> str:
        """Say which project it is."""
        return f"<project {self.name} at {self._project.root}>"


#: How users call it: `monkey.Project`.
Project = ProjectHandle


def _make_job_result(row: ResultRow) -> JobResult:
    kept = {name: getattr(row, name) for name in JobResult.__dataclass_fields__}
    return JobResult(**kept)
