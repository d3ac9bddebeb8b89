"""Conditions on metrics: what they wait for, in words, and what is wrong with them, by line and column."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.job.stop_when import StopEvidence, StopRule, find_met_rule
from monkey.spec.sweep.load import parse_spec

NAN, ABOVE, SILENT = (
    StopRule("loss", kind="nan"),
    StopRule("acc", above=0.9, sweep=True),
    StopRule("acc", silent=1200.0),
)


def rules(text: str) -> list[StopRule]:
    return parse_spec(f"command: 'true'\nstop_when: {text}\n", "it.yaml", Path()).settings().stop_when


def test_what_a_spec_may_say() -> None:
    said = """
  - {metric: loss, is: nan}
  - {metric: acc, above: 0.9, scope: sweep}
  - metric: acc
    not_reported_for: 20m
  - {metric: loss, below: -1, after_step: 100, scope: job}
  - {metric: loss, is: INF}
"""
    assert rules(said) == [NAN, ABOVE, SILENT, StopRule("loss", below=-1, after_step=100), StopRule("loss", kind="inf")]
    assert rules("{metric: loss, is: nan}") == [NAN]


def test_settings_keep_them_and_say_nothing_without() -> None:
    settings = SweepSettings(stop_when=[NAN, ABOVE, SILENT, StopRule("loss", below=-1, after_step=100)])
    assert SweepSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings
    assert "stop_when" not in SweepSettings().to_json()


@pytest.mark.parametrize(
    ("rule", "met", "not_met"),
    [
        (NAN, [math.nan], [math.inf, 1.0]),
        (StopRule("loss", kind="inf"), [math.inf, -math.inf], [math.nan, 1e300]),
        (StopRule("loss", kind="nonfinite"), [math.inf, -math.inf, math.nan], [0.0, 10**400]),
        (StopRule("loss", above=0.9), [0.91, 10**400, math.inf], [0.9, math.nan, -math.inf]),
        (StopRule("loss", below=0.9), [0.89, -(10**400), -math.inf], [0.9, math.nan]),
    ],
)
def test_what_meets_a_condition(rule: StopRule, met: list[float], not_met: list[float]) -> None:
    for value in met + not_met:
        seen = StopEvidence.from_json(json.loads(json.dumps(StopEvidence("loss", value, 3).to_json())))
        assert rule.met(seen) is (value in met), value
        assert not rule.met(StopEvidence("another", value, 3)) and not SILENT.met(seen)
    assert all(rule.told(StopEvidence("loss", value, 3)) for value in met)


def test_steps_and_silence() -> None:
    late = StopRule("loss", above=1, after_step=10)
    assert [late.met(StopEvidence("loss", 2, step)) for step in (None, 9, 10)] == [False, False, True]
    assert [SILENT.met(StopEvidence("acc", silent=seconds)) for seconds in (1199.0, 1200.0)] == [False, True]
    assert not ABOVE.met(StopEvidence("acc", silent=1200.0))
    assert find_met_rule([StopRule("acc", above=0.5), ABOVE], StopEvidence("acc", 0.95)) is ABOVE


@pytest.mark.parametrize("sweep", [False, True])
def test_a_goal_is_a_bound_where_better_values_are(sweep: bool) -> None:
    assert StopRule("acc", above=0.9, sweep=sweep).is_goal("acc", maximize=True)
    assert StopRule("loss", below=0.1, sweep=sweep).is_goal("loss", maximize=False)
    assert not StopRule("loss", above=10, sweep=sweep).is_goal("loss", maximize=False), "it has diverged"
    # Of another metric only the scope says what it is for.
    assert StopRule("acc", above=0.9, sweep=sweep).is_goal("loss", maximize=False) is sweep
    assert StopRule("acc", above=0.9, sweep=sweep).is_goal(None, maximize=False) is sweep
    assert not StopRule("loss", kind="nan", sweep=sweep).is_goal("acc", maximize=True)
    assert not StopRule("loss", silent=60, sweep=sweep).is_goal("loss", maximize=False)


def test_words() -> None:
    assert [rule.words() for rule in (NAN, ABOVE, SILENT, StopRule("loss", below=-1, after_step=100))] == [
        "loss is nan",
        "acc above 0.9 (ends the sweep)",
        "acc not reported for 20m",
        "loss below -1 from step 100 on",
    ]
    assert NAN.told(StopEvidence("loss", math.nan, 40)) == "loss is nan at step 40"
    assert ABOVE.told(StopEvidence("acc", 0.93, 7)) == "acc is 0.93, above 0.9, at step 7"
    assert ABOVE.told(StopEvidence("acc", 0.93)) == "acc is 0.93, above 0.9"
    assert SILENT.told(StopEvidence("acc", silent=1201.0)) == "acc was not reported for 20m"


@pytest.mark.parametrize(
    ("text", "at", "message", "hint"),
    [
        ("loss", "loss", "expected a list of conditions, found the text 'loss'", "- {metric: loss, is: nan}"),
        ("[loss]", "loss", "expected a condition, found the text 'loss'", "{metric: loss, is: nan}"),
        ("[{is: nan}]", "{is", "expected a metric's name, found nothing (null)", "monkey.log"),
        ("[{metric: '', is: nan}]", "''", "expected a metric's name", "monkey.log"),
        ("[{metric: loss}]", "{metric", "expected one thing to wait for, found none", "above: 0.99"),
        ("[{metric: a, above: 1, below: 2}]", "{metric", "found above and below in one", "several are a list"),
        ("[{metric: a, is: big}]", "big", "expected nan, inf or nonfinite, found the text 'big'", "is: nan"),
        ("[{metric: a, above: nan}]", "nan", "expected a number, found the text 'nan'", "above: 0.99"),
        ("[{metric: a, below: true}]", "true", "expected a number, found true", "below: 0.99"),
        ("[{metric: a, not_reported_for: soon}]", "soon", "expected a duration, found the text 'soon'", "30m"),
        ("[{metric: a, above: 1, after_step: -1}]", "-1", "expected a step, found -1", "after_step: 100"),
        ("[{metric: a, not_reported_for: 1m, after_step: 1}]", "after_step", "silence has no step", "remove"),
        ("[{metric: a, above: 1, scope: all}]", "all", "expected job or sweep, found the text 'all'", "without"),
        ("[{metric: a, abov: 1, is: nan}]", "abov:", "unknown key 'abov'", "'above'"),
        (
            "[{metric: a, is: nan}, {metric: a, is: NaN}]",
            "{metric: a, is: NaN",
            "the same condition stands twice",
            "remove one",
        ),
    ],
)
def test_mistakes(text: str, at: str, message: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        rules(text)
    (found,) = caught.value.problems
    assert (found.line, found.column) == (2, 12 + text.index(at))
    assert message in found.message and hint in (found.hint or "")
