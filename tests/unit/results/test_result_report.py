"""A report for a pull request: what it says, and that nothing that users wrote is more than text there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from monkey.apply.world.world import World
from monkey.plan.text.inert_markdown import MAX_COMMENT_CHARACTERS
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.notices.sweep_outcome import judge_sweep
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.results.earlier_results import gather_earlier
from monkey.results.result_chart import draw_chart
from monkey.results.result_report import ResultReport, format_report
from monkey.results.result_rows import gather_results
from tests.unit.apply.small_project import SPEC, Pen, apply, opened, write_project
from tests.unit.results.sample_results import Job, accs, made, metric
from tests.unit.results.test_result_chart import check_chart

HOSTILE = [
    "```\n# pwned\n![x](http://evil)",
    "`````",
    "@everyone closes #1",
    "<img src=x onerror=alert(1)>",
    "| a | b |",
    "a\u202eb\u200bc",
    "`",
    "</details><script>alert(1)</script>",
    '"]\n    click x href "javascript:alert(1)"',
    "%%{init: {'securityLevel': 'loose'}}%%",
    "[x](javascript:alert(1))",
    "\\",
]


async def _run(world: World, ends: Sequence[Mapping[str, Any] | str]) -> None:
    """Let the sweep's jobs end: with these metrics, or failed for that reason."""
    jobs = (await apply(world)).wanted[0].desired.table.ids
    known = (await world.reader().read()).succeeded
    pen = Pen(world, f"local/pen/{len(known)}")  # each agent has a journal of its own
    for job, end in zip(jobs, ends, strict=False):
        if job in known:
            continue
        await pen.begin(job)
        if isinstance(end, str):
            await pen.end(job, ClaimEnd.FAILED, reason="exit code 1", exit_code=1, log_tail=[end])
        else:
            await pen.end(job, metrics={name: metric(value) for name, value in end.items()})


async def _report(world: World) -> str:
    snapshot = await world.reader().read()
    view = snapshot.sweeps["small"]
    revision = view.state.revision
    assert revision is not None
    results = gather_results(revision.table, revision.settings, view.jobs)
    earlier = gather_earlier(view, await list_revisions(world.at, world.keys, world.signers, "small"))
    return format_report(ResultReport(view, results, judge_sweep("test", snapshot, view, 0.0), earlier))


def report(root: Path, ends: Sequence[Mapping[str, Any] | str], spec: str = SPEC) -> str:
    """Return the report on a sweep whose jobs end so."""
    write_project(root, spec)

    async def live() -> str:
        async with opened(root) as world:
            await _run(world, ends)
            return await _report(world)

    return asyncio.run(live())


def test_it_says_what_came_of_the_sweep(tmp_path: Path) -> None:
    text = report(tmp_path, [{"loss": 0.5}, {"loss": 0.125}, "ValueError: lr"])
    lines = text.splitlines()
    assert lines[0] == "### monkey: sweep `small` has failed"
    assert lines[2] == "2 succeeded, 1 failed (revision 1)"
    assert lines[4].startswith("**Best `loss`: 0.125** with `lr=2` (job `")
    assert [line.split(" | ")[:3] for line in lines if line.startswith("| 2")] == [["| 2", "0.125", "`succeeded`"]]
    assert "- 1 job failed: `exit code 1`: `ValueError: lr` (job `" in text
    assert '    x-axis "lr" ["1 (n 1)", "2 (n 1)"]' in lines and "    line [0.5, 0.125]" in lines
    assert lines[-1].startswith("All rows: `monkey results small`")


def test_a_sweep_at_work_says_how_far_it_is(tmp_path: Path) -> None:
    text = report(tmp_path, [{"loss": 0.5}])
    assert text.splitlines()[:3] == ["### monkey: sweep `small` is at work", "", "1/3 (revision 1)"]


def test_it_compares_with_the_revision_before(tmp_path: Path) -> None:
    write_project(tmp_path)

    async def live() -> str:
        async with opened(tmp_path) as world:
            await _run(world, [{"loss": 0.5}, {"loss": 0.25}, {"loss": 0.75}])
            assert "since revision" not in await _report(world)
            write_project(tmp_path, SPEC.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
            await _run(world, [{}, {}, {}, {"loss": 0.125}])
            return await _report(world)

    assert "Best `loss` is better since revision 1: 0.25 → 0.125" in asyncio.run(live())


def test_what_users_wrote_is_only_text(tmp_path: Path) -> None:
    spec = SPEC.replace("[1, 2, 3]", json.dumps(HOSTILE)).replace("{lr}", "x") + "  \n"
    ends: list[Mapping[str, Any] | str] = [{"loss": float(at), **dict.fromkeys(HOSTILE[:3], 1.0)} for at in range(9)]
    text = report(tmp_path, [*ends, *HOSTILE[:3]], spec.replace("python3 train.py --lr x", "python3 train.py {lr}"))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    every = [token for top in tokens for token in (top, *(top.children or ()))]
    assert not {token.type for token in every} & {"image", "link_open", "html_block", "html_inline"}
    assert sum(token.type == "heading_open" for token in every) == 1
    assert sum(token.type == "table_open" for token in every) == 1
    assert len({len(row.split(" | ")) for row in text.splitlines() if row.startswith("| ")}) <= 2
    plain = "".join(token.content for token in every if token.type == "text")
    assert "everyone" not in plain and "closes" not in plain and "\u202e" not in text and "\u200b" not in text
    (fence,) = [token for token in every if token.type == "fence"]
    assert fence.info == "mermaid"
    check_chart(fence.content)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_metric_is_only_a_label_of_the_chart(hostile: str) -> None:
    jobs = [{"x": at, "name": hostile} for at in (1, 2, 3)]
    seen = [Job(metrics={hostile: metric(float(at))}) for at in (1, 2, 3)]
    check_chart(draw_chart(made(jobs, seen, metric=hostile)))


def test_a_report_is_never_longer_than_a_forge_takes(tmp_path: Path) -> None:
    names = [f"p{at}" + "x" * 200 for at in range(40)]
    values = "".join(f'  {name}: ["{"`" * 3000}a", "{"`" * 3000}b"]\n' for name in names[:3])
    spec = f"name: small\ncommand: python3 train.py {{{names[0]}}}\nparameters:\n{values}metric: {{name: loss}}\n"
    text = report(
        tmp_path, [{"loss": float(at), **dict.fromkeys(names, 1.0)} for at in range(6)] + ["`" * 300] * 2, spec
    )
    assert len(text) < MAX_COMMENT_CHARACTERS


def test_no_metric_is_no_chart() -> None:
    assert draw_chart(made([{"lr": 1}, {"lr": 2}], accs(1.0, 2.0), metric=None)) is None


def test_the_rule_that_separates_failures_is_named(tmp_path: Path) -> None:
    write_project(tmp_path, SPEC.replace("[1, 2, 3]", "{range: [0, 20]}"))

    async def inside() -> str:
        async with opened(tmp_path) as world:
            await _run(world, [{"loss": lr} if lr < 12 else "KeyError" for lr in range(20)])
            return await _report(world)

    assert "); `8 of 8 with lr >= 12; 0 of 12 elsewhere (p = " in asyncio.run(inside())
