"""A report in a browser without a network: the page that `monkey web` shows, but for what needs its server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from monkey.apply.world.world import World
from monkey.protocol.entries import ClaimEnd
from tests.browser import find_faults, open_tab
from tests.page.serving import log_curves, make_loss, make_value, write_report
from tests.unit.apply.small_project import Pen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

JOBS, POINTS = 24, 1500
SPEC = f"""\
name: small
command: python3 train.py {{seed}}
parameters: {{seed: {{range: [0, {JOBS}]}}, width: [8]}}
metric: {{name: loss}}
"""
ROWS = "tbody tr[aria-rowindex]"


async def play(world: World, pen: Pen, jobs: list[str]) -> None:
    """Have jobs succeed with curves, but for two that fail, one that runs, and one that was not begun."""
    for place, job in enumerate(jobs[:-2]):
        k = await pen.begin(job, beat=False)
        loss = {"last": make_loss(place), "min": 0.0, "max": 1.0, "step": 9, "count": POINTS}
        if place < 2:
            pen.written[job, k] = b"much before\nOSError: no space\n"
            about = {"reason": "exit code 1", "exit_code": 1, "log_tail": ["Traceback", "OSError: no space"]}
            await pen.end(job, ClaimEnd.FAILED, **about)
        else:
            await pen.end(job, metrics={"loss": loss})
    await pen.begin(jobs[-2])
    await log_curves(world, jobs[2:-2], POINTS)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory, shared_folder: Path) -> str:
    return write_report(tmp_path_factory.mktemp("report"), SPEC, play, shared_folder)


def check_looks(tab: Page) -> None:
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the names that it takes
        assert not find_faults(tab)


def count_actions(tab: Page) -> int:
    """Return the number of things on the page that only a server could do."""
    return sum(tab.get_by_role("button", name=name).count() for name in ("Pause", "Cancel", "Retry", "Log of"))


def check_tip(tab: Page) -> None:
    """Compare a point beside the pointer with what the job logged at that step."""
    box = tab.locator(".curves .u-over").bounding_box()
    assert box
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.mouse.move(box["x"] + 2, box["y"] + 20)
    value, step, label = re.split(r" at |\n", tab.locator(".tip").inner_text())
    place = int(label.removeprefix("seed ")) - 2
    assert float(value) == pytest.approx(make_value(place, int(step)), rel=1e-4)


def test_rows_are_sorted_and_filtered_and_curves_are_drawn(browser: Browser, link: str) -> None:
    with open_tab(browser, link, offline=True) as tab:
        tab.locator("h1", has_text="small").wait_for()  # of one sweep, its page is the first
        assert tab.locator(ROWS).count() == JOBS
        best = sorted(make_loss(place) for place in range(2, JOBS - 2))
        shown = [float(text) for text in tab.locator(f"{ROWS} td:nth-child(3)").all_inner_texts() if text]
        assert shown == pytest.approx(best, abs=1e-5)
        tab.locator(".curves .chart > div[data-drawn='10']").wait_for()
        check_tip(tab)
        tab.get_by_role("button", name="seed").click()
        tab.get_by_role("button", name="seed").click()
        assert tab.locator(f"{ROWS} td:nth-child(2)").first.inner_text() == str(JOBS - 1)
        tab.get_by_role("searchbox").fill("seed<4")
        tab.get_by_text(f"4 of {JOBS} jobs").wait_for()
        assert "#" in tab.url and "where=" in tab.url
        tab.locator(".curves .chart > div[data-drawn='2']").wait_for()
        check_looks(tab)
        assert count_actions(tab) == 0 and tab.get_by_role("link", name="Machines").count() == 0
        tab.reload()  # the address has the view
        tab.get_by_text(f"4 of {JOBS} jobs").wait_for()


def test_a_job_has_its_page_and_of_a_failed_one_the_end_of_its_log(browser: Browser, link: str) -> None:
    with open_tab(browser, link, offline=True, viewport={"width": 390, "height": 800}) as tab:
        tab.locator(".failures summary").click()
        tab.locator(".failures").get_by_role("link").click()
        assert tab.locator("pre.log").inner_text() == "Traceback\nOSError: no space"
        assert "monkey logs" in tab.locator("section", has=tab.locator("pre.log")).inner_text()
        tab.go_back()
        tab.locator(ROWS).first.click()
        tab.locator(".charts canvas").wait_for()
        assert tab.locator("pre.log").count() == 0, "the log of a job that succeeded is not in a report"
        check_looks(tab)
        assert count_actions(tab) == 0
        job = tab.locator("h1").inner_text()
        tab.get_by_role("link", name="Sweeps").first.click()
        tab.get_by_role("link", name="small").click()
        other = tab.locator(f"{ROWS} a code").nth(1).inner_text()
        tab.goto(f"{link}#sweep=small&job={job}&against={other}")
        tab.locator(".difference", has_text="parameter seed").wait_for()


def test_it_opens_in_a_frame_that_trusts_nothing(browser: Browser, link: str) -> None:
    """As notebooks and forges show a file: it has no storage, and no origin."""
    page = Path(unquote(urlsplit(link).path)).with_name("frame.html")
    page.write_text(f'<!doctype html><iframe sandbox="allow-scripts" src="{link}" width="900" height="700"></iframe>')
    context = browser.new_context(offline=True)
    tab, errors = context.new_page(), list[object]()
    tab.on("pageerror", lambda error: errors.append(error))
    tab.goto(page.as_uri())
    inside = tab.frame_locator("iframe")
    inside.locator(".curves .chart > div[data-drawn='10']").wait_for()
    inside.locator(ROWS).first.click()
    inside.locator(".charts canvas").wait_for()
    assert not errors
    context.close()
