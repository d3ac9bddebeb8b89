"""Chains of adoptions, followed to a job that has finished. Many can write into a store: a chain may be a circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from monkey.plan.observed import ObservedProject


class FinalResults:
    """The project's adoptions, which lead from a job to the finished job whose result stands for it."""

    def __init__(self, adoptions: Sequence[Mapping[str, str]], finished: AbstractSet[str]) -> None:
        """Take each job's direct adoption, in mappings of which the first that has a job counts; and what succeeded."""
        self._adoptions, self._finished = [layer for layer in adoptions if layer], finished
        self._known: dict[str, str | None] = {}

    @property
    def empty(self) -> bool:
        """Return whether nothing is adopted."""
        return not self._adoptions

    def find(self, job: str) -> str | None:
        """Return the job itself if it has finished, else the finished one at the end of its chain; None for none."""
        finished = self._finished
        if job in finished:
            return job
        for layer in self._adoptions:
            if job in layer:
                if layer[job] in finished:  # nearly every chain has one link
                    return layer[job]
                break
        else:
            return None
        return self._walk(job)

    def _walk(self, job: str) -> str | None:
        path, at = dict[str, None](), job
        # Each job is passed once: what is known of it then is kept, however long a chain somebody wrote.
        while at not in self._finished and at not in self._known and at not in path:
            path[at] = None
            at = next((layer[at] for layer in self._adoptions if at in layer), at)
        end = at if at in self._finished else self._known.get(at)
        self._known.update(dict.fromkeys(path, end))
        return end


def collect_adoptions(observed: ObservedProject) -> dict[str, str]:
    """Return what the newest revisions adopt: an interrupted apply, or an earlier monkey, recorded nothing else."""
    found: dict[str, str] = {}
    for seen in observed.sweeps.values():
        found.update(seen.applied.adopted if seen.applied is not None else {})
    return found


def trace_results(observed: ObservedProject, revisions: Mapping[str, str], sweep: str) -> FinalResults:
    """Return the adoptions as a sweep sees them: the project's log, its own revision, other `revisions`."""
    own = observed.sweeps.get(sweep)
    mine = own.applied.adopted if own is not None and own.applied is not None else {}
    return FinalResults((observed.adoptions, mine, revisions), observed.finished)
