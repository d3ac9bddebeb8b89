"""A plan as lines, and as the document for programs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import monkey.plan.text.plan_document
from monkey.plan.change import FleetPlan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.cost import MachineChange
from monkey.plan.observed import ObservedProject
from monkey.plan.text.lines import format_fleet_plan, format_sweep_plan, summarize_plan
from monkey.plan.text.markdown import format_markdown
from monkey.plan.text.plan_document import serialize_plan
from tests.unit.plan.making import RECIPE, grid, seen, want
from tests.unit.plan.sweep_of_ten import CODE, EDITED, JOBS, OLD, WORLD, edited


def test_lines_tell_every_lot_with_its_reason() -> None:
    lines = [f"{line.mark} {line.text}" for line in format_sweep_plan(edited(warnings=("odd",)).sweeps[0])]
    assert lines == [
        "+ lr=0.3 × 5 seeds = 5 jobs",
        "~ lr=0.1 × 5 seeds = 5 jobs",
        "~ because code changed: train.py",
        "~ in place of 1 running: stopped and released, 4 queued: dropped",
        "- lr=0.01 × 5 seeds = 5 jobs",
        "- 2 queued: dropped, 3 finished: results stay in the store",
        "* max_retries 0 → 3",
        "↑ code: 1000 bytes to upload",
        "  warning: odd",
    ]


def test_lines_of_kept_jobs() -> None:
    plan = compute_plan([want(JOBS)], WORLD)
    assert [line.text for line in format_sweep_plan(plan.sweeps[0])] == ["10 jobs (3 succeeded, 1 running, 6 queued)"]
    other = compute_plan([want(JOBS, name="other")], WORLD)
    assert [line.text for line in format_sweep_plan(other.sweeps[0])] == [
        "lr=0.01 × 2 seeds = 2 jobs",
        "lr=0.1 × 5 seeds = 5 jobs",
        "3 jobs (3 finished in sweep digits)",
    ]


def test_lines_of_adopted_jobs_and_of_a_cut_apply() -> None:
    plan = compute_plan([want(JOBS, CODE, code_files=EDITED)], WORLD, ["code"])
    texts = [line.text for line in format_sweep_plan(plan.sweeps[0])]
    assert {"3 jobs (3 adopted)", "3 jobs adopted: --keep-stale code"} <= set(texts)
    cut = compute_plan([want(JOBS)], ObservedProject({"digits": replace(OLD, unmarked=("local",))}, code={RECIPE.code}))
    assert "an apply was cut short: local was never told of this work" in [
        line.text for line in format_sweep_plan(cut.sweeps[0])
    ]


@pytest.mark.parametrize(
    ("fleet", "text"),
    [
        (FleetPlan("local", 3, 0), "local: 3 jobs to run, no agents at work, to be started"),
        (FleetPlan("local", 1, 1), "local: 1 job to run, 1 agent at work"),
        (FleetPlan("aws", 9, 2, "aws", 2, 4), "aws: 9 jobs to run, 2 agents at work, machines 2 → 4"),
        (FleetPlan("aws", 9, 2, "aws", 2, 2), "aws: 9 jobs to run, 2 agents at work, machines stay 2"),
    ],
)
def test_lines_of_fleets(fleet: FleetPlan, text: str) -> None:
    (line,) = format_fleet_plan(fleet)
    assert line.text == text


def test_lines_of_machines() -> None:
    changes = (
        MachineChange("create", "h1", "agent, kept alive by cron"),
        MachineChange("update", "h2", "max_slots 2 → 4"),
        MachineChange("update", "h3", trouble="it does not answer\nhint: is it on?"),
        MachineChange("delete", "h4", "everything goes", stops=2),
        MachineChange("replace", "h5", "image one → two"),
        MachineChange("replace", "h6", "it cannot be moved", trouble="no right"),
    )
    fleet = FleetPlan("lab", 9, 2, "ssh", 3, 3, machines=changes, notes=("warning: keys end",))
    assert fleet.changes
    assert [(line.mark.value, line.text) for line in format_fleet_plan(fleet)][1:] == [
        ("+", "lab/h1: agent, kept alive by cron"),
        ("~", "lab/h2: max_slots 2 → 4"),
        ("!", "lab/h3"),
        ("!", "it does not answer"),
        ("!", "hint: is it on?"),
        ("-", "lab/h4: everything goes; 2 jobs running there: stopped and queued again"),
        ("~", "lab/h5: replaced: image one → two"),
        ("!", "lab/h6: it cannot be moved"),
        ("!", "no right"),
        (" ", "warning: keys end"),
    ]
    plan = compute_plan([want(JOBS)], WORLD).with_fleets([fleet])
    assert plan.changes and summarize_plan(plan) == "10 kept; 4 machines change; 2 machines cannot be used now"
    parts = (MachineChange("create", "network", part=True), MachineChange("update", "group", part=True))
    rented = replace(fleet, fleet="cloud", machines=(*parts, MachineChange("replace", "i-1")))
    told = "10 kept; 1 machine changes; 2 parts of a fleet change"
    assert summarize_plan(cloudy := plan.with_fleets([rented])) == told and told in format_markdown(cloudy)
    assert json.loads(json.dumps(serialize_plan(plan)))["fleets"][0]["machines"][2]["trouble"].startswith("it does not")
    assert "lab/h2: max_slots" in format_markdown(
        plan
    ) and "takes machines away from 2 running jobs" in format_markdown(plan)


def test_summary() -> None:
    assert summarize_plan(edited()) == "5 new, 5 stale, 5 removed; 1 setting changes; 1000 bytes to upload"
    assert summarize_plan(compute_plan([want(JOBS)], WORLD)) == "nothing to do: 10 kept"
    assert summarize_plan(compute_plan([want([])], ObservedProject())) == "no jobs; 1000 bytes to upload"


def test_the_document_has_what_its_docstring_promises() -> None:
    made = json.loads(json.dumps(serialize_plan(edited()), allow_nan=False))
    sweep = made["sweeps"][0]
    assert sweep["name"] == "digits" and sweep["head"] == 4 and sweep["revision"] == 2
    assert sweep["jobs"] == {"new": 5, "stale": 5, "kept": 0, "removed": 5}
    assert sweep["upload"] == {"bytes": 1000, "objects": 1}
    assert sweep["reasons"] == [{"kind": "code", "text": "code changed: train.py", "jobs": 5}]
    assert sweep["settings"] == [{"name": "max_retries", "before": 0, "after": 3}]
    assert sweep["states"]["removed"] == {"queued": 2, "succeeded": 3} and sweep["released"] == 1
    assert made["fleets"][0] == {
        "fleet": "local", "type": "", "jobs": 10, "agents": 1, "before": None, "after": None, "changes": False,
        "cost": None, "machines": [], "notes": [],
    }  # fmt: skip
    promised = monkey.plan.text.plan_document.__doc__ or ""
    assert all(f"`{key}`" in promised for key in (*made, *sweep, *made["fleets"][0]))


def test_constant_that_changes_is_told() -> None:
    old = grid(lr=[0.02], seed=range(2))
    seeds = ["2 seeds = 2 jobs"]
    told = [line.text for line in format_sweep_plan(compute_plan([want(old)], ObservedProject()).sweeps[0])]
    assert told[:1] == seeds, "of a first apply, only what varies"
    world = ObservedProject({"digits": seen(old)})
    other = compute_plan([want(grid(lr=[0.03], seed=range(2)))], world).sweeps[0]
    lots = {line.mark: line.text for line in format_sweep_plan(other) if not line.detail}
    assert lots["+"] == "lr=0.03 × 2 seeds = 2 jobs" and lots["-"] == "lr=0.02 × 2 seeds = 2 jobs"
    more = compute_plan([want(grid(lr=[0.02], seed=range(4)))], world).sweeps[0]
    assert {line.mark: line.text for line in format_sweep_plan(more)}["+"] == "2 seeds = 2 jobs"
