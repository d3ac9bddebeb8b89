"""The metric that two sweeps are compared by, and which way is better: one definition for both sides."""

from __future__ import annotations

from typing import NamedTuple

from monkey.errors import MonkeyError
from monkey.spec.job.recipe import MetricTake, SweepSettings


class ComparedMetric(NamedTuple):
    """A metric, whether more of it is better, and which value stands for a job."""

    name: str
    maximize: bool
    take: MetricTake


def select_metric(
    base: SweepSettings, head: SweepSettings, asked: str | None = None, goal: str | None = None
) -> ComparedMetric:
    """Return the metric to compare by: the one asked for, or else that of HEAD's spec, or of BASE's.

    Whether more is better, and which value counts, is what a spec says that ranks by it, HEAD's first. `goal`:
    "maximize" or "minimize", for a metric that no spec ranks by. Raises MonkeyError where that is not known, or the
    two specs contradict each other.
    """
    name = asked or head.metric or base.metric
    if name is None:
        raise MonkeyError("which metric? The spec of neither side names one", hint="add --metric NAME --goal minimize")
    ranking = [settings for settings in (head, base) if settings.metric == name]
    goals = {settings.maximize for settings in ranking}
    if len(goals) > 1 and goal is None:
        raise MonkeyError(
            f"{name}: more is better by the spec of one side, less by the other's",
            hint="add --goal maximize, or --goal minimize",
        )
    if not goals and goal is None:
        raise MonkeyError(
            f"{name}: neither spec ranks by it, so which way is better is not known",
            hint="add --goal maximize, or --goal minimize",
        )
    maximize = goal == "maximize" if goal else goals.pop()
    return ComparedMetric(name, maximize, ranking[0].take if ranking else "last")
