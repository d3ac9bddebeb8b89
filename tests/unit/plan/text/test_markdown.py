"""A plan as Markdown: whatever users wrote in it stays inert."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from monkey.ci_run import CiRun
from monkey.plan.change import FleetPlan
from monkey.plan.commits.place import Refusal
from monkey.plan.compute_plan import compute_plan
from monkey.plan.cost import MachineChange
from monkey.plan.digest import compute_plan_digest
from monkey.plan.gone_sweeps import GoneSweep
from monkey.plan.observed import ObservedProject
from monkey.plan.text.inert_markdown import MAX_COMMENT_CHARACTERS, format_inline_code
from monkey.plan.text.markdown import format_markdown
from tests.unit.plan.making import FILES, grid, seen, want
from tests.unit.plan.sweep_of_ten import CODE, EDITED, JOBS, WORLD, edited


def test_markdown_says_aloud_that_finished_jobs_would_be_run_again() -> None:
    world = replace(WORLD, sweeps={"digits": seen(JOBS, succeeded=range(4))})
    assert "**4 finished jobs will be run again.**" in format_markdown(
        compute_plan([want(JOBS, CODE, code_files=EDITED)], world)
    )
    assert "run again" not in format_markdown(compute_plan([want(JOBS)], world))


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
    assert len(text) <= MAX_COMMENT_CHARACTERS and "more parts" in text
    assert text.splitlines()[-1].startswith("Digest: `"), "what is agreed to is never cut"


def test_unchanged_sweeps_are_one_line() -> None:
    names = [f"n{i}" for i in range(9)]
    world = replace(WORLD, sweeps={name: seen(JOBS) for name in names})
    text = format_markdown(compute_plan([want(JOBS, name=name) for name in names], world))
    assert "9 unchanged sweeps\n" in text and "####" not in text and "|" not in text
    assert "1 unchanged sweep\n" in format_markdown(compute_plan([want(JOBS)], WORLD))


def test_refused_sweep_is_shown_with_its_reason() -> None:
    why = Refusal("refused: last applied from a newer commit", "`git pull` first")
    text = format_markdown(compute_plan([want(JOBS[:2], misplaced=why)], WORLD))
    assert "#### `digits` (`specs/digits.yaml`)" in text and "unchanged" not in text
    shown = text.partition("```diff\n")[2].splitlines()
    assert shown[:2] == [f"! {why.text}", f"!     {why.hint}"], "it comes first: what would change does not"


def test_what_hurts_comes_first() -> None:
    plan = edited()
    machines = (MachineChange("create", "h1"), MachineChange("update", "h2", trouble="away"))
    fleet = FleetPlan("local", 3, 1, "ssh", 1, 2, machines=machines)
    gone = GoneSweep("old", "specs/old.yaml", 3, 2, 0)
    text = format_markdown(replace(plan, warnings=("odd",), gone=(gone,)).with_fleets([fleet]))
    told = [
        "**Applying stops 1 running job.**",
        "! odd",
        "! sweep old continues",
        "- sweep old: its spec",
        "#### `digits`",
    ]
    told += ["#### `digits`", "! local/h2", "!     away", "+ local/h1"]
    assert sorted(told, key=text.index) == told
    assert "machines 1 → 2" in text


def test_last_line_says_digest_commit_and_run() -> None:
    plan = compute_plan([want(JOBS, git={"commit": "a" * 40, "branch": None, "dirty": False})], WORLD)
    digest = compute_plan_digest(plan)
    assert format_markdown(plan).splitlines()[-1] == f"Digest: `{digest}` · commit `{'a' * 40}`"
    run = CiRun(commit="b" * 40, url="https://forge.example/o/r/actions/runs/7")
    last = f"Digest: `{digest}` · commit `{'b' * 40}` · [run](https://forge.example/o/r/actions/runs/7)"
    assert format_markdown(plan, run).splitlines()[-1] == last
    odd = format_markdown(plan, replace(run, commit="`@boss`", url="javascript:alert(1)")).splitlines()[-1]
    assert "run" not in odd and "`` `@boss` ``" in odd


@pytest.mark.parametrize("hostile", HOSTILE)
def test_many_changed_sweeps_are_folded_and_inert(hostile: str) -> None:
    desired = [want(JOBS, name=f"{hostile}{i}") for i in range(6)]
    text = format_markdown(compute_plan(desired, ObservedProject()))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    tags = [t.content for t in tokens if t.type == "html_block"]
    assert len(tags) == 12 and "####" not in text
    opened = re.compile(r"<details><summary><code>[^<>\n]*</code>: 10 new</summary>\n|</details>\n")
    assert all(opened.fullmatch(tag) for tag in tags)
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "code_inline", "softbreak"}
