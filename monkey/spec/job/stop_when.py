"""`stop_when`: conditions on a job's metrics that end it, or its sweep; and what was seen that met one.

A rule is held against evidence wherever it is judged: while the job runs, and ever after. So a rule that is altered
opens again just those jobs that it would not have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, make_mistake_error, suggest_word
from monkey.spec.yaml.units import format_duration, parse_duration

#: What `is:` takes, and the values that it means.
NONFINITE_KINDS = ("nan", "inf", "nonfinite")
#: What a rule may ask for; each asks for one of them.
STOP_RULE_TESTS = ("is", "above", "below", "not_reported_for")
_KEYS = ("metric", *STOP_RULE_TESTS, "after_step", "scope")
STOP_RULE_SCOPES = ("job", "sweep")
#: Rules of one sweep: each is held against every value.
_MAX_STOP_RULES = 100
#: Steps are of 64 bits, as everywhere.
_MAX_STEP = 1 << 63


@dataclass(frozen=True)
class StopEvidence:
    """What a job showed when it met a rule: a value of a metric, or that it was silent on it for so many seconds."""

    metric: str
    value: float | None = None
    step: int | None = None
    silent: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads; JSON has no NaN and no infinities."""
        if self.value is None:
            return {"metric": self.metric, "silent": self.silent}
        value = self.value if _is_finite(self.value) else str(self.value)
        return {"metric": self.metric, "value": value, **({} if self.step is None else {"step": self.step})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StopEvidence:
        """Read what `to_json` wrote. Raises ValueError for anything else."""
        value, silent, step = data.get("value"), data.get("silent"), data.get("step")
        if isinstance(value, str):
            value = float(value)
        known = isinstance(data.get("metric"), str) and (_is_number(value) if silent is None else _is_number(silent))
        if not known or not (step is None or type(step) is int):
            raise ValueError(f"expected what met a condition, found {dict(data)!r:.80}")
        return cls(data["metric"], None if silent is not None else value, step, silent)


@dataclass(frozen=True)
class StopRule:
    """One condition: exactly one of `kind`, `above`, `below` and `silent` is there."""

    metric: str
    #: "nan", "inf" (of either sign) or "nonfinite".
    kind: str | None = None
    #: Values beyond these, not equal to them.
    above: float | None = None
    below: float | None = None
    #: Seconds of running without a value.
    silent: float | None = None
    #: The first step that counts; values without a step do not, then.
    after_step: int | None = None
    #: Does it end the whole sweep?
    sweep: bool = False

    def is_goal(self, metric: str | None, maximize: bool) -> bool:
        """Is it a goal of a sweep that ranks by `metric`: a bound to reach, and none beyond which a job is given up?

        A bound on that metric is one if it lies where better values are; on another metric, if it ends the sweep.
        """
        if self.above is None and self.below is None:
            return False
        return (self.above is not None) is maximize if self.metric == metric else self.sweep

    def met(self, seen: StopEvidence) -> bool:
        """Say whether the evidence is of what the rule waits for."""
        if seen.metric != self.metric:
            return False
        if self.silent is not None:
            return seen.silent is not None and seen.silent >= self.silent
        value = seen.value
        if value is None or (self.after_step is not None and (seen.step is None or seen.step < self.after_step)):
            return False
        if self.kind is not None:
            nan = value != value
            return nan if self.kind == "nan" else not _is_finite(value) and (self.kind == "nonfinite" or not nan)
        return value > self.above if self.above is not None else self.below is not None and value < self.below

    def words(self) -> str:
        """Say what it waits for: "loss is nan", "val_accuracy not reported for 20m"."""
        if self.silent is not None:
            text = f"{self.metric} not reported for {format_duration(self.silent)}"
        elif self.kind is not None:
            text = f"{self.metric} is {self.kind}"
        else:
            text = f"{self.metric} {_format_bound(self)}"
        after = "" if self.after_step is None else f" from step {self.after_step} on"
        return text + after + (" (ends the sweep)" if self.sweep else "")

    def told(self, seen: StopEvidence) -> str:
        """Say what met it: "loss is nan at step 40", "val_accuracy is 0.993, above 0.99, at step 7"."""
        if self.silent is not None:
            return f"{self.metric} was not reported for {format_duration(self.silent)}"
        at = "" if seen.step is None else f" at step {seen.step}"
        bound = "" if self.kind is not None else f", {_format_bound(self)}," if at else f", {_format_bound(self)}"
        value = seen.value if type(seen.value) is int else f"{seen.value:.6g}"  # whole ones may be beyond floats
        return f"{self.metric} is {value}{bound}{at}"

    def to_json(self) -> dict[str, Any]:
        """Return it as a spec writes it, times in seconds."""
        said = {
            "metric": self.metric,
            "is": self.kind,
            "above": self.above,
            "below": self.below,
            "not_reported_for": self.silent,
            "after_step": self.after_step,
            "scope": "sweep" if self.sweep else None,
        }
        return {key: value for key, value in said.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StopRule:
        """Read what `to_json` wrote."""
        return cls(
            data["metric"],
            data.get("is"),
            data.get("above"),
            data.get("below"),
            data.get("not_reported_for"),
            data.get("after_step"),
            data.get("scope") == "sweep",
        )


def find_met_rule(rules: Iterable[StopRule], seen: StopEvidence) -> StopRule | None:
    """Return the first of the rules that the evidence meets; of those that end the sweep before the others."""
    found = [rule for rule in rules if rule.met(seen)]
    return next((rule for rule in found if rule.sweep), found[0] if found else None)


def parse_stop_rules(raw: Any) -> list[StopRule]:
    """Read `stop_when`. Raises MistakesError."""
    if isinstance(raw, dict):
        raw = [raw]
    if not isinstance(raw, list):
        raise make_mistake_error(
            f"expected a list of conditions, found {describe_value(raw)}", "write: - {metric: loss, is: nan}"
        )
    if len(raw) > _MAX_STOP_RULES:
        raise make_mistake_error(
            f"expected at most {_MAX_STOP_RULES} conditions, found {len(raw)}", "each is held against every value"
        )
    rules: list[StopRule] = []
    mistakes: list[Mistake] = []
    for at, one in enumerate(raw):
        found = _find_rule_mistakes(one)
        if not found and (rule := _parse_rule(one)) in rules:
            found = [Mistake((), "the same condition stands twice", "remove one")]
        mistakes += [mistake.under((at,)) for mistake in found]
        rules += [] if found else [rule]
    if mistakes:
        raise MistakesError(mistakes)
    return rules


def _parse_rule(raw: Mapping[str, Any]) -> StopRule:
    said = {**raw, "is": _parse_kind(raw["is"])} if "is" in raw else dict(raw)
    if "not_reported_for" in said:
        said["not_reported_for"] = parse_duration(said["not_reported_for"])
    return StopRule.from_json(said)


def _find_rule_mistakes(raw: Any) -> list[Mistake]:
    if not isinstance(raw, dict):
        return [Mistake((), f"expected a condition, found {describe_value(raw)}", "write {metric: loss, is: nan}")]
    found = [
        Mistake((key,), f"unknown key {key!r}", suggest_word(key, _KEYS, "keys"), on_key=True)
        for key in raw
        if key not in _KEYS
    ]
    metric = raw.get("metric")
    if not isinstance(metric, str) or not metric.strip():
        where = ("metric",) if "metric" in raw else ()
        found.append(
            Mistake(where, f"expected a metric's name, found {describe_value(metric)}", "as monkey.log calls it")
        )
    tests = [key for key in STOP_RULE_TESTS if key in raw]
    if len(tests) != 1:
        told = f"{' and '.join(tests)} in one" if tests else "none"
        hint = "write one of is: nan, above: 0.99, below: 0.001, not_reported_for: 20m; several are a list"
        found.append(Mistake((), f"expected one thing to wait for, found {told}", hint))
    return found + [mistake for key in raw if (mistake := _find_value_mistake(raw, key))]


def _find_value_mistake(raw: Mapping[str, Any], key: str) -> Mistake | None:
    """Return what is wrong with the value of one key."""
    value = raw[key]
    match key:
        case "is" if _parse_kind(value) is None:
            return Mistake((key,), f"expected nan, inf or nonfinite, found {describe_value(value)}", "write is: nan")
        case "above" | "below" if not _is_number(value) or not _is_finite(value):
            return Mistake((key,), f"expected a number, found {describe_value(value)}", f"write {key}: 0.99")
        case "not_reported_for":
            try:
                parse_duration(value)
            except MistakesError as error:
                return error.mistakes[0].under((key,))
        case "after_step" if type(value) is not int or not 0 <= value < _MAX_STEP:
            return Mistake(
                (key,), f"expected a step, found {describe_value(value)}", "write a whole number: after_step: 100"
            )
        case "after_step" if "not_reported_for" in raw:
            return Mistake((key,), "silence has no step", "remove after_step", on_key=True)
        case "scope" if value not in STOP_RULE_SCOPES:
            return Mistake((key,), f"expected job or sweep, found {describe_value(value)}", "job is what it is without")
        case _:
            pass
    return None


def _parse_kind(value: Any) -> str | None:
    """Return what `is:` asks for."""
    return value.lower() if isinstance(value, str) and value.lower() in NONFINITE_KINDS else None


def _format_bound(rule: StopRule) -> str:
    return f"above {rule.above:g}" if rule.above is not None else f"below {rule.below:g}"


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_finite(value: float) -> bool:
    """Say whether it is neither NaN nor infinite, of whole numbers of any size."""
    return value - value == 0
