"""A plan as lines, as JSON, as Markdown, and saved."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

import monkey.plan.saved_plan
from monkey.errors import PlanError, StalePlan
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.cost import MachineChange
from monkey.plan.diff import compute_plan
from monkey.plan.observed import ObservedProject
from monkey.plan.saved_plan import dump_saved_plan, parse_saved_plan, serialize_plan, verify_saved_plan
from monkey.plan.text.lines import format_fleet_plan, format_sweep_plan, summarize_plan
from monkey.plan.text.markdown import _MAX_COMMENT_CHARACTERS, format_inline_code, format_markdown
from monkey.spec.job.recipe import SweepSettings
from tests.unit.plan.making import FILES, RECIPE, grid, seen, want

JOBS = grid(lr=[0.01, 0.1], seed=range(5))
EDITED = {**FILES, "train.py": "t2"}
CODE = replace(RECIPE, code="d" * 64)
OLD = seen(JOBS, succeeded=range(3), running=[5], head=4, applied_at=2)
WORLD = ObservedProject({"digits": OLD}, OLD.succeeded, {RECIPE.code}, {"local": 1}, store="s1")


def edited(**options: Any) -> Plan:
    settings = SweepSettings(max_retries=3)
    jobs = grid(lr=[0.1, 0.3], seed=range(5))
    return compute_plan([want(jobs, CODE, code_files=EDITED, settings=settings, **options)], WORLD)


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
    promised = monkey.plan.saved_plan.__doc__ or ""
    assert all(f"`{key}`" in promised for key in (*made, *sweep, *made["fleets"][0]))


def test_a_saved_plan_fits_the_world_it_was_made_in() -> None:
    saved = parse_saved_plan(dump_saved_plan(edited(), ["specs/digits.yaml"], ["code"]))
    assert (saved.specs, saved.keep_stale) == (("specs/digits.yaml",), ("code",))
    verify_saved_plan(saved, edited())


def test_progress_makes_no_saved_plan_stale() -> None:
    before = compute_plan([want(JOBS)], WORLD)
    after = compute_plan(
        [want(JOBS)], replace(WORLD, sweeps={"digits": seen(JOBS, succeeded=range(9), head=4)}, agents={})
    )
    verify_saved_plan(parse_saved_plan(dump_saved_plan(before, [])), after)


def test_more_to_adopt_is_progress_and_less_is_not() -> None:
    desired = [want(JOBS, CODE, code_files=EDITED)]
    few, many = (
        compute_plan(desired, replace(WORLD, finished=set(OLD.applied.table.ids[:n])), ["code"]) for n in (3, 5)
    )
    verify_saved_plan(parse_saved_plan(dump_saved_plan(few, [])), many)
    with pytest.raises(StalePlan, match="2 results that it would have adopted"):
        verify_saved_plan(parse_saved_plan(dump_saved_plan(many, [])), few)


@pytest.mark.parametrize(
    ("fresh", "moved"),
    [
        (compute_plan([want(JOBS)], replace(WORLD, sweeps={"digits": replace(OLD, head=5)})), "from entry 4 to 5"),
        (compute_plan([want(JOBS, CODE, code_files=EDITED)], WORLD), "code changed: train.py"),
        (compute_plan([want(JOBS[1:])], WORLD), "its parameters changed: 10 → 9 jobs"),
        (compute_plan([want(grid(lr=[0.01, 0.2], seed=range(5)))], WORLD), "its parameters changed: 10 → 10 jobs"),
        (compute_plan([want(JOBS, settings=SweepSettings(max_retries=1))], WORLD), "max_retries 0 → 1"),
        (compute_plan([want(JOBS)], replace(WORLD, store="s2")), "the store is another one"),
        (compute_plan([], WORLD), "sweep digits: its spec is gone"),
        (compute_plan([want(JOBS), want(JOBS, name="more")], WORLD), "sweep more: its spec is not in the saved plan"),
        (
            compute_plan([want(JOBS)], WORLD).with_fleets([FleetPlan("local", 7, 1, "aws")]),
            "provider local: what its machines",
        ),
    ],
)
def test_whatever_moved_is_named(fresh: Plan, moved: str) -> None:
    saved = parse_saved_plan(dump_saved_plan(compute_plan([want(JOBS)], WORLD), []))
    with pytest.raises(StalePlan) as raised:
        verify_saved_plan(saved, fresh)
    assert moved in raised.value.message and raised.value.hint


def test_markdown_says_aloud_that_finished_jobs_would_be_run_again() -> None:
    world = replace(WORLD, sweeps={"digits": seen(JOBS, succeeded=range(4))})
    assert "**4 finished jobs will be run again.**" in format_markdown(
        compute_plan([want(JOBS, CODE, code_files=EDITED)], world)
    )
    assert "run again" not in format_markdown(compute_plan([want(JOBS)], world))


def test_own_apply_is_not_taken_for_somebody_else_s() -> None:
    saved = parse_saved_plan(dump_saved_plan(compute_plan([want(JOBS)], ObservedProject(store="s1")), []))
    applied = replace(WORLD, store="s1", sweeps={"digits": seen(JOBS)})
    with pytest.raises(StalePlan, match="from entry 0 to 1: this plan was applied already"):
        verify_saved_plan(saved, compute_plan([want(JOBS)], applied))
    other = replace(applied, sweeps={"digits": seen(JOBS[1:])})
    with pytest.raises(StalePlan, match="from entry 0 to 1: it was changed meanwhile"):
        verify_saved_plan(saved, compute_plan([want(JOBS)], other))


def test_all_that_moved_is_named_at_once() -> None:
    with pytest.raises(StalePlan) as raised:
        verify_saved_plan(parse_saved_plan(dump_saved_plan(compute_plan([want(JOBS)], WORLD), [])), edited())
    assert raised.value.message.count("\n") == 2


@pytest.mark.parametrize("text", ["", "{}", "[]", "3", '{"format": 1, "saved": 3}', "[" * 100_000, '{"format": 1}'])
def test_what_is_no_saved_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"plan\.json is not a saved plan"):
        parse_saved_plan(text, "plan.json")


@pytest.mark.parametrize("key", ["head", "recipe", "settings", "jobs", "table", "code_files", "adopted"])
def test_a_saved_plan_that_lacks_or_twists_a_binding_is_refused(key: str) -> None:
    for broken in (None, [], {"x": 1} if key != "code_files" and key != "adopted" else 1.5):
        data = json.loads(dump_saved_plan(edited(), []))
        data["saved"]["sweeps"]["digits"][key] = broken
        with pytest.raises(PlanError, match="not a saved plan"):
            parse_saved_plan(json.dumps(data))


def test_a_saved_plan_of_a_newer_monkey_says_so() -> None:
    with pytest.raises(PlanError, match="newer monkey"):
        parse_saved_plan('{"format": 2}')


def test_markdown_shows_the_same() -> None:
    text = format_markdown(edited())
    assert "| new | stale | kept | removed |" in text and "| 5 | 5 | 0 | 5 |" in text
    assert "! lr=0.1 × 5 seeds = 5 jobs" in text and "**Applying stops 1 running job.**" in text


def test_markdown_shows_fleets_that_have_something_to_do() -> None:
    idle = compute_plan([want(JOBS)], WORLD).with_fleets([FleetPlan("local", 0, 1)])
    assert "local:" not in format_markdown(idle)
    assert "local: 3 jobs" in format_markdown(idle.with_fleets([FleetPlan("local", 3, 1)]))
    assert "aws:" in format_markdown(idle.with_fleets([FleetPlan("aws", 0, 0, "aws", 2, 0)]))


HOSTILE = [
    "```\n# pwned\n![x](http://evil)",
    "`````",
    "@everyone #1",
    "<img src=x onerror=alert(1)>",
    "| a | b |",
    "a\u202eb\u200bc",
    "",
    "`",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_users_wrote_stays_code_in_markdown(hostile: str) -> None:
    files = {**FILES, f"{hostile}.py": "1"}
    desired = want([{"x": hostile, "y": i} for i in (1, 2)], CODE, name=hostile, code_files=files, warnings=(hostile,))
    world = ObservedProject({hostile: seen([{"x": hostile, "y": i} for i in (2, 3)])})
    tokens = (
        MarkdownIt("commonmark", {"html": True}).enable("table").parse(format_markdown(compute_plan([desired], world)))
    )
    kinds = {token.type for top in tokens for token in (top, *(top.children or ()))}
    assert not kinds & {"image", "link_open", "html_block", "html_inline", "bullet_list_open"}
    assert sum(token.type == "heading_open" for token in tokens) == 2
    assert sum(token.type == "table_open" for token in tokens) == 1
    shown = "".join(t.content for top in tokens for t in (top, *(top.children or ())) if t.type in ("text", "code"))
    assert "\u202e" not in shown and "\u200b" not in shown


@pytest.mark.parametrize("hostile", HOSTILE)
def test_inline_code_is_one_token(hostile: str) -> None:
    (inline,) = [t for t in MarkdownIt("commonmark").parse(f"x {format_inline_code(hostile)} x") if t.type == "inline"]
    assert [token.type for token in inline.children or ()] in (
        ["text", "code_inline", "text"],
        ["text"] if not hostile else [],
    )


def test_a_comment_is_never_longer_than_a_forge_takes() -> None:
    desired = [want(grid(x=["a" * 30 + str(i)]), name=f"n{i}" + "x" * 200) for i in range(400)]
    text = format_markdown(compute_plan(desired, ObservedProject()))
    assert len(text) < _MAX_COMMENT_CHARACTERS + 200 and "more parts" in text
