"""A plan as Markdown: whatever users wrote in it stays inert."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from monkey.plan.change import FleetPlan
from monkey.plan.diff import compute_plan
from monkey.plan.observed import ObservedProject
from monkey.plan.text.markdown import _MAX_COMMENT_CHARACTERS, format_inline_code, format_markdown
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
    assert len(text) < _MAX_COMMENT_CHARACTERS + 200 and "more parts" in text
