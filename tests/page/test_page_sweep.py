"""The page of a sweep: how far it is, and how its jobs stand."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from monkey.apply.world.world import World
from monkey.protocol.entries import ClaimEnd
from monkey.results.result_rows import gather_results
from tests.browser import open_tab
from tests.page.serving import Scene, served, write_report
from tests.unit.apply.small_project import Pen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

SPEC = """\
name: small
command: python3 train.py {seed}
parameters: {seed: {range: [0, 8]}}
metric: {name: loss}
"""
#: Reads the widths of those parts of the bar that are as high as it is, of the whole.
FILLED = """(bar) => [...bar.children]
    .filter((one) => one.offsetHeight === bar.offsetHeight)
    .reduce((sum, one) => sum + one.offsetWidth, 0) / bar.offsetWidth"""


def make_loss(last: float | None) -> dict[str, dict[str, float | int | None]]:
    return {"loss": {"last": last, "min": 0.1, "max": 2.0, "step": 9, "count": 10, "nonfinite": int(last is None)}}


async def play(world: World, pen: Pen, jobs: list[str]) -> None:
    """Have one job succeed, one diverge, one fail, three run, and two wait."""
    for job in jobs[:6]:
        await pen.begin(job, beat=False)
    await pen.end(jobs[0], metrics=make_loss(0.3))
    await pen.end(jobs[1], metrics=make_loss(None))
    await pen.end(jobs[2], ClaimEnd.FAILED, reason="exit code 1", exit_code=1)


def test_the_bar_is_filled_with_what_is_done(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, SPEC, play) as link, open_tab(browser, link) as tab:
        bar = tab.get_by_role("img", name="2 succeeded, 1 failed, 3 running, 2 queued")
        assert bar.evaluate(FILLED) == pytest.approx(3 / 8, abs=0.02)


def test_a_job_that_diverged_says_so_beside_its_state(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, SPEC, play) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        rows = tab.locator("tbody tr[aria-rowindex]")
        rows.nth(7).wait_for()
        states = [rows.nth(at).locator("td").first.text_content() or "" for at in range(8)]
        assert sorted(states)[-2:] == ["succeeded", "succeeded (diverged)"]
        assert sum("diverged" in state for state in states) == 1
        tab.get_by_role("searchbox").fill("diverged")
        tab.locator(".tools [role=status]", has_text="1 of 8 jobs").wait_for()
        rows.first.click()
        tab.locator("main header .state", has_text="succeeded (diverged)").wait_for()


#: Types on at the moment in which the address takes what was typed before.
TYPE_ON = """(text) => {
    const replace = history.replaceState;
    history.replaceState = function (...how) {
        history.replaceState = replace;
        replace.apply(this, how);
        const box = document.querySelector("input.filter");
        box.value = text;
        box.dispatchEvent(new Event("input", { bubbles: true }));
    };
}"""


def test_what_is_typed_while_the_page_is_busy_stays(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, SPEC, play) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        box = tab.get_by_role("searchbox")
        box.wait_for()
        tab.evaluate(TYPE_ON, "state=failed")
        box.fill("state=f")
        tab.wait_for_url("**where=state%3Dfailed*")
        assert box.input_value() == "state=failed"
        tab.locator(".tools [role=status]", has_text="1 of 8 jobs").wait_for()
        # What another page set is still taken over.
        tab.go_back()
        tab.go_forward()
        box.wait_for()
        assert box.input_value() == "state=failed"


#: Values that look alike once they are cut or rounded, as YAML has them.
ALIKE = [
    "mistralai/Mistral-7B-Instruct-v0.2",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "1",
    "'1'",
    "1.0",
    "true",
    "'true'",
    "1.0e-05",
    "0.123456789",
    "0.123456788",
    "{depth: [64, 64, 64, 64, 64, 64, 64, 64, 1], width: 8}",
    "{depth: [64, 64, 64, 64, 64, 64, 64, 64, 2], width: 8}",
]


async def play_none(world: World, pen: Pen, jobs: list[str]) -> None:
    """Leave all jobs waiting."""


def test_values_that_differ_never_look_the_same_on_the_page(browser: Browser, tmp_path: Path) -> None:
    spec = SPEC.replace("{seed: {range: [0, 8]}}", f"{{seed: {{values: [{', '.join(ALIKE)}]}}}}")
    with served(tmp_path, spec, play_none) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        rows = tab.locator("tbody tr[aria-rowindex]")
        rows.nth(len(ALIKE) - 1).wait_for()
        cells = [rows.nth(at).locator("td").nth(1) for at in range(len(ALIKE))]
        shown = [cell.text_content() or "" for cell in cells]
        assert len(set(shown)) == len(ALIKE), shown
        assert {"1", "1.0", '"1"', "true", '"true"', "1e-05", "0.123456789", "0.123456788"} <= set(shown)
        # The browser cuts nothing from what is there.
        assert all(cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth") for cell in cells)


#: Parameters and metrics that are called like columns of ours, and like each other.
NAMES = """\
name: small
command: python3 train.py
parameters: {state: {range: [0, 8]}, time: 5, seconds: 7, loss: [1]}
metric: {name: loss}
"""


def test_names_of_ours_keep_their_columns(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, NAMES, play) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        tab.get_by_label("all columns").check()
        rows = tab.locator("tbody tr[aria-rowindex]")
        rows.nth(7).wait_for()
        heads = [text.strip("↑↓") for text in tab.locator("thead th").all_text_contents()]
        ours = ["state", "parameter.state", "parameter.time", "parameter.seconds", "loss", "metric.loss", "time"]
        assert heads[:7] == ours and len({*heads}) == len(heads)
        cells = rows.first.locator("td").all_text_contents()
        assert cells[:6] == ["succeeded", cells[1], "5", "7", "1", "0.3"]
        for words, count in {
            "state=failed": 1,
            "parameter.state=3": 1,
            "parameter.seconds=7": 8,
            "seconds=7": 0,
            "loss=1": 8,
            "metric.loss<0.5": 1,
            "parameter.loss=1": 8,
        }.items():
            tab.get_by_role("searchbox").fill(words)
            shown = f"{count} of 8 jobs" if count < 8 else "8 jobs"
            tab.get_by_role("status").get_by_text(shown, exact=True).wait_for()
        tab.get_by_role("searchbox").fill("")
        tab.get_by_role("button", name="parameter.state").click()
        tab.get_by_role("searchbox").fill("state=queued")
        tab.get_by_role("status").get_by_text("2 of 8 jobs", exact=True).wait_for()
        assert [cell.split()[0] for cell in rows.locator("td:nth-child(2)").all_text_contents()] == ["6", "7"]


#: A job each: how it ended, and the metric's last value; None: not finite. Better values belong to what does not count.
ENDS = [
    ("succeeded", 0.5),
    ("failed", 0.1),
    ("succeeded", None),
    ("succeeded", 0.3),
    ("stopped", 0.05),
    ("running", 0.01),
    ("succeeded", 0.7),
    ("failed", None),
    ("queued", None),
    ("succeeded", 0.3),
]


def sort_by_pandas(jobs: list[str], *, largest: bool = False) -> list[str]:
    """Return the jobs in the order that docs/metrics.md gives: those that count, then the others; NaN last in both."""
    import pandas

    frame = pandas.DataFrame(ENDS, columns=["state", "loss"], index=jobs).astype({"loss": float})
    frame["behind"] = (frame["state"] != "succeeded") | frame["loss"].isna()
    frame = frame.sort_values("loss", ascending=not largest, na_position="last", kind="stable")
    return list(frame.sort_values("behind", kind="stable").index)


def make_ends_scene(known: dict[str, list[str]]) -> Scene:
    """Return a scene in which jobs have ended so; `known` gets the jobs, and the order of `results`."""

    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        kinds = {"succeeded": ClaimEnd.SUCCEEDED, "failed": ClaimEnd.FAILED, "stopped": ClaimEnd.STOPPED}
        for job, (state, last) in zip(jobs, ENDS, strict=True):
            if state == "queued":
                continue
            k = await pen.begin(job, beat=False)
            if state == "running":
                told = {"job": job, "k": k, "sweep": "small", "metrics": make_loss(last)}
                pen.heart.vitals = partial(dict, running=[told], alert="")
            else:
                await pen.end(job, kinds[state], metrics=make_loss(last))
        view = (await world.reader().read()).sweeps["small"]
        assert view.state.revision is not None
        results = gather_results(view.state.revision.table, view.state.revision.settings, view.jobs)
        known["jobs"], known["results"] = jobs, [row.job for row in results.rows]

    return scene


@pytest.mark.needs("pandas")
def test_the_page_and_the_report_rank_jobs_as_results_does(
    browser: Browser, tmp_path: Path, shared_folder: Path
) -> None:
    spec = SPEC.replace("[0, 8]", f"[0, {len(ENDS)}]")
    known: dict[str, list[str]] = {}

    def read_order(tab: Page) -> list[str]:
        cells = tab.locator("tbody tr[aria-rowindex] code")
        cells.nth(len(ENDS) - 1).wait_for()
        return cells.all_text_contents()

    with served(tmp_path / "page", spec, make_ends_scene(known)) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        assert read_order(tab) == known["results"] == sort_by_pandas(known["jobs"])
        tab.get_by_role("button", name="loss").click()
        tab.locator("th[aria-sort=descending]").wait_for()
        assert read_order(tab) == sort_by_pandas(known["jobs"], largest=True)
    address = write_report(tmp_path / "report", spec, make_ends_scene(known), shared_folder)
    with open_tab(browser, address) as tab:
        if tab.get_by_role("link", name="small").count():
            tab.get_by_role("link", name="small").first.click()
        assert read_order(tab) == known["results"] == sort_by_pandas(known["jobs"])


async def play_best(world: World, pen: Pen, jobs: list[str]) -> None:
    await pen.begin(jobs[0], beat=False)
    await pen.end(jobs[0], metrics=make_loss(0.3) | {"acc": make_loss(0.7)["loss"]})


def test_last_values_beside_a_best_one_say_so(browser: Browser, tmp_path: Path) -> None:
    spec = SPEC.replace("{name: loss}", "{name: loss, take: best}")
    with served(tmp_path, spec, play_best) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        rows = tab.locator("tbody tr[aria-rowindex]")
        rows.nth(7).wait_for()
        heads = [text.strip("↑↓") for text in tab.locator("thead th").all_text_contents()]
        assert heads[2:4] == ["loss", "acc (last)"]
        assert rows.first.locator("td").all_text_contents()[2:4] == ["0.1", "0.7"]
        tab.get_by_role("searchbox").fill("acc>0.5")
        tab.get_by_role("status").get_by_text("1 of 8 jobs", exact=True).wait_for()
