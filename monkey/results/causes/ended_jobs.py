"""The jobs that show whether a rule of failures holds. Agents report by it: it reads no YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from monkey.protocol.status.store_snapshot import SweepView
from monkey.results.causes.failure_rule import FEWEST, FailureRule, find_failure_rule
from monkey.results.failure_kinds import FailureKind
from monkey.spec.job.job_table import ABSENT, ParameterColumn

#: The name of the machine among the parameters.
HOST = "host"
#: States of jobs that show whether a rule holds; the others have not ended.
_ENDED = frozenset({"succeeded", "failed", "stopped"})


class EndedJobs:
    """The jobs of a sweep that have ended, with their parameters and machines: looked at once for all its failures."""

    def __init__(self, view: SweepView) -> None:
        """Look at nothing yet."""
        self._view = view

    @cached_property
    def columns(self) -> Mapping[str, ParameterColumn]:
        """The parameters of all jobs, and the machine."""
        revision = self._view.state.revision
        columns = dict(revision.table.columns) if revision else {}
        return columns if HOST in columns else {**columns, HOST: _gather_hosts(self._view.hosts)}

    @cached_property
    def places(self) -> Sequence[int]:
        """The rows of the jobs that have ended."""
        return [at for at, state in enumerate(self._view.states) if state in _ENDED]

    def explain(self, kind: FailureKind) -> FailureRule | None:
        """Return the rule that separates this kind of failure from the other ended jobs; None where there is none."""
        revision = self._view.state.revision
        if revision is None or kind.count < FEWEST:
            return None
        return find_failure_rule(self.columns, [revision.rows[job] for job in kind.jobs], self.places)


def _gather_hosts(hosts: Sequence[str]) -> ParameterColumn:
    numbers = {"": ABSENT}
    index = [numbers.setdefault(host, len(numbers) - 1) for host in hosts]
    return ParameterColumn(list(numbers)[1:], index)
