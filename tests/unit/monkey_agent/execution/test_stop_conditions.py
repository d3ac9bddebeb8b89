"""Jobs that are ended by what they measure: real processes, real metric files."""

from __future__ import annotations

from typing import Any

from monkey.spec.job.stop_when import StopRule
from monkey_agent.execution.stop_conditions import StopConditions
from monkey_agent.ports import AttemptEnd, AttemptOutcome
from tests.loops import Run
from tests.unit.monkey_agent.body import NEVER, Body, script

NAN, GOAL = StopRule("loss", kind="nan"), StopRule("acc", above=0.9, sweep=True)
#: Never ends by itself, unless it is asked to.
STAY = "\nimport time\nopen('made', 'w').write('half')\nwhile True: time.sleep(0.05)"


def ended(body: Body, run: Run, text: str, rules: list[StopRule], **settings: Any) -> AttemptOutcome:
    about = {"stop_when": rules, "grace": 0.5, "timeout": NEVER, **settings}
    return run(body.run(script("import monkey\n" + text), settings=about, outputs=["made"]))


def test_a_job_is_ended_by_what_it_measures_and_keeps_what_it_made(body: Body, run: Run) -> None:
    logged = "for i in range(60): monkey.log('loss', float('nan') if i == 40 else 0.5, step=i)"
    outcome = ended(body, run, logged + STAY, [StopRule("acc", kind="nan"), NAN, GOAL])
    assert (outcome.ending, outcome.reason) == (AttemptEnd.MET, "loss is nan at step 40")
    assert outcome.met and outcome.met.to_json() == {"metric": "loss", "value": "nan", "step": 40}
    assert outcome.summary["loss"]["step"] == 59 and outcome.summary["loss"]["nonfinite"] == 1
    assert list(outcome.outputs) == ["made"] and outcome.exit_code == 143


def test_silence_is_counted_from_the_last_value_of_that_metric(body: Body, run: Run) -> None:
    logged = "monkey.log('acc', 1)\nimport time\nfor i in range(30): monkey.log('loss', i); time.sleep(0.1)"
    outcome = ended(body, run, logged + STAY, [StopRule("acc", silent=1.5), StopRule("loss", silent=NEVER)])
    assert (outcome.ending, outcome.reason) == (AttemptEnd.MET, "acc was not reported for 1.5s")
    assert outcome.seconds >= 1.5 and outcome.met and outcome.met.silent and outcome.met.silent >= 1.5


def test_what_ends_by_itself_has_ended_so_and_tells_of_a_goal_that_it_reached(body: Body, run: Run) -> None:
    outcome = ended(body, run, "monkey.log({'acc': 0.95, 'loss': float('nan')}, step=3)", [NAN, GOAL])
    assert (outcome.ending, outcome.reason, outcome.exit_code) == (AttemptEnd.SUCCEEDED, "", 0)
    assert outcome.met and (outcome.met.metric, outcome.met.value, outcome.met.step) == ("acc", 0.95, 3)
    failed = ended(
        body, run, "monkey.log({'acc': 0.95, 'loss': float('nan')}, step=3)\nraise SystemExit(3)", [NAN, GOAL]
    )
    assert (failed.ending, failed.reason, failed.met) == (AttemptEnd.FAILED, "exit code 3", None)


def test_a_rule_that_was_met_stays_met_and_the_sweeps_comes_first() -> None:
    conditions = StopConditions([NAN, GOAL, StopRule("acc", above=0.5)])
    for value, step in ((0.6, 1), (0.95, 2), (0.1, 3)):
        conditions.see("acc", value, step)
    conditions.see("loss", float("nan"), None)
    found = conditions.met()
    assert found and found.step == 2 and conditions.met(sweep=True) is found
    assert not conditions.listens and conditions.listen(1e9) is None
