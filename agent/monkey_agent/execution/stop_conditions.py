"""A running job's metrics, held against its `stop_when` as they come in."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.spec.job.stop_when import StopEvidence, StopRule


class StopConditions:
    """The rules of one attempt, and what met them first."""

    def __init__(self, rules: Sequence[StopRule]) -> None:
        """Wait for any of `rules`."""
        self._rules = rules
        self._values: dict[str, list[int]] = {}
        for at, rule in enumerate(rules):
            if rule.silent is None:
                self._values.setdefault(rule.metric, []).append(at)
        self._silent = [rule for rule in rules if rule.silent is not None]
        self._listened = {rule.metric for rule in self._silent}
        #: Metrics that were reported since the last `listen`, and the job's own time of each one's last report.
        self._heard: set[str] = set()
        self._last: dict[str, float] = {}
        self._met: dict[int, StopEvidence] = {}

    @property
    def listens(self) -> bool:
        """Does any rule wait for silence?"""
        return bool(self._silent)

    def see(self, metric: str, value: float, step: int | None) -> None:
        """Take one value; a rule that it meets stays met, whatever comes after."""
        if metric in self._listened:
            self._heard.add(metric)
        for at in self._values.get(metric, ()):
            if at not in self._met:
                seen = StopEvidence(metric, value, step)
                if self._rules[at].met(seen):
                    self._met[at] = seen

    def listen(self, ran: float) -> StopEvidence | None:
        """Return of what was silent for too long; the job ran for `ran` seconds so far, those frozen not counted."""
        self._last |= dict.fromkeys(self._heard, ran)
        self._heard.clear()
        for rule in self._silent:
            seen = StopEvidence(rule.metric, silent=round(ran - self._last.get(rule.metric, 0.0), 3))
            if rule.met(seen):
                return seen
        return None

    def met(self, *, sweep: bool = False) -> StopEvidence | None:
        """Return what was met, if anything was: first of what ends the sweep, and nothing else where that is asked."""
        order = sorted(self._met, key=lambda at: not self._rules[at].sweep)
        found = [at for at in order if self._rules[at].sweep or not sweep]
        return self._met[found[0]] if found else None
