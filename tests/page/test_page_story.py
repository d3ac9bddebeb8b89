"""A sweep of 200 jobs that runs while the page is open: a user watches, filters, reads a log, pauses and resumes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.shop import Shop, until
from tests.browser import find_faults, open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

JOBS = 200
TRAIN = """\
import sys, time
from pathlib import Path
import monkey
ledger, i = Path(sys.argv[1]), int(sys.argv[2])
with (ledger / "ran").open("a") as file:
    file.write(f"{i}\\n")
begun = len((ledger / "ran").read_text().splitlines())
def is_held():
    return i % 50 != 3 and begun > (30 if (ledger / "watched").exists() else 15)
for step in range(10):
    monkey.log({"loss": 1 / (1 + step) + i / 100, "accuracy": step / 10}, step=step)
    print(f"step {step}", flush=True)
    while step == 5 and is_held() and (ledger / "hold").exists() and not (ledger / f"go-{i}").exists():
        time.sleep(0.05)
if i % 50 == 3:
    raise SystemExit(f"RuntimeError: no memory at {i}")
(Path(monkey.output_dir()) / "model.txt").write_text("trained")
"""
SPEC = """\
name: watched
command: python3 train.py {ledger} {{i}}
parameters: {{i: {{range: [0, {jobs}]}}, width: [64]}}
metric: {{name: loss}}
outputs: [outputs/model.txt]
"""


@contextmanager
def web(shop: Shop, *arguments: str) -> Iterator[str]:
    """Run `monkey web` as a user does; gives its link."""
    process = shop.start("web", "--no-browser", *arguments)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err and "error" not in err.lower(), err


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "shop")
    (made.root / "train.py").write_text(TRAIN)
    (made.root / "specs").mkdir()
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "hold").touch()
    text = SPEC.format(ledger=tmp_path / "ledger", jobs=JOBS)
    (made.root / "specs" / "watched.yaml").write_text(text)
    yield made
    made.kill_all()


#: The rows of a table that are in sight.
ROWS = "tbody tr[aria-rowindex]"


def see(tab: Page, text: str, within: str = "main") -> None:
    """Wait until a text is on the page."""
    tab.locator(within).get_by_text(text).first.wait_for()


def see_count(tab: Page, count: int) -> None:
    """Wait until the table says that it has so many of the jobs."""
    tab.locator(".tools [role=status]", has_text=re.compile(f"^{count} of {JOBS} jobs$")).wait_for()


def check_looks(tab: Page) -> None:
    """Look for faults of accessibility, light and dark, wide and narrow."""
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 420)):
        tab.emulate_media(color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": 900})
        assert not (faults := find_faults(tab)), "\n".join(faults)
        beyond = tab.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, f"{beyond} pixels stand out at the right"
    tab.set_viewport_size({"width": 1280, "height": 900})


def test_a_running_sweep_is_watched_and_steered(browser: Browser, shop: Shop, tmp_path: Path) -> None:
    shop.run("apply", "--detach", "--yes")
    questions: list[str] = []

    def agree(question: str) -> bool:
        questions.append(question)
        return len(questions) > 1

    with web(shop) as link, open_tab(browser, link, "409", agree) as tab:
        assert "token" not in tab.url
        tab.get_by_role("link", name="watched").click()
        see(tab, f"{JOBS} jobs")
        started = int(tab.locator(".chips button:has(.succeeded) b").inner_text())
        # Without a reload, the counts follow the jobs.
        (tmp_path / "ledger" / "watched").touch()
        until(
            lambda: int(tab.locator(".chips button:has(.succeeded) b").inner_text()) > started, "jobs end on the page"
        )
        check_looks(tab)
        watch_held_job(tab, tmp_path)
        pause_and_resume(tab, shop, tmp_path)
        assert len(questions) == 2 and questions[1].startswith("Pause watched? "), questions
        assert " What those did so far (" in questions[1]
        look_at_failures(tab)
        compare_two(tab)
        tab.get_by_role("link", name="Machines").click()
        see(tab, "at work")
        check_looks(tab)


def watch_held_job(tab: Page, tmp_path: Path) -> None:
    """Find a held job by the filter and the keyboard, and follow its log to its end."""
    until(lambda: (tmp_path / "ledger" / "ran").read_text().count("\n") > 31, "jobs are held")
    tab.keyboard.press("/")
    tab.keyboard.type("state=running")
    shown = tab.locator(ROWS)
    until(lambda: shown.count() and all("running" in row for row in shown.all_inner_texts()), "only those are shown")
    held = int(tab.locator(f"{ROWS} >> nth=0 >> td >> nth=1").inner_text())
    tab.locator(".table").focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    assert re.search(r"job=[0-9a-f]{16}", tab.url)
    see(tab, "step 5", "pre.log")
    assert "step 6" not in tab.locator("pre.log").inner_text()
    tab.locator(".charts canvas").first.wait_for()
    check_looks(tab)
    (tmp_path / "ledger" / f"go-{held}").touch()
    see(tab, "step 9", "pre.log")
    tab.locator("main header .state.succeeded").wait_for()
    see(tab, "model.txt")
    tab.go_back()


def pause_and_resume(tab: Page, shop: Shop, tmp_path: Path) -> None:
    """Pause by the button: no job begins any more, by the jobs' own ledger, until it is resumed."""
    tab.get_by_role("searchbox").fill("")
    tab.get_by_role("button", name="Pause").click()
    see(tab, "nothing was changed")
    assert not shop.states("watched").get("paused")
    tab.get_by_role("button", name="Pause").click()
    tab.locator("main header .state.paused").wait_for()
    until(lambda: not shop.states("watched").get("running"), "running jobs are stopped")
    ran = (tmp_path / "ledger" / "ran").read_text().count("\n")
    assert ran < JOBS and shop.states("watched")["paused"] >= JOBS - ran
    (tmp_path / "ledger" / "hold").unlink()
    tab.get_by_role("button", name="Resume").click()
    until(lambda: (tmp_path / "ledger" / "ran").read_text().count("\n") > ran, "jobs begin again")
    shop.run("status", "-w", "watched", code=1)
    assert shop.states("watched") == {"succeeded": JOBS - 4, "failed": 4}
    see(tab, "4 failed")


def look_at_failures(tab: Page) -> None:
    tab.get_by_role("button", name="failed 4").click()
    see_count(tab, 4)
    tab.locator(".failures summary").click()
    see(tab, "RuntimeError: no memory", ".failures")
    check_looks(tab)
    tab.get_by_role("button", name="failed 4").click()


def compare_two(tab: Page) -> None:
    """Open the best job, and compare it with the next."""
    ids = [tab.locator(f"{ROWS} a code").nth(at).inner_text() for at in (0, 1)]
    tab.locator(ROWS).first.click()
    tab.get_by_label("against").fill(ids[1])
    tab.get_by_role("button", name="Compare").click()
    tab.locator(".difference").wait_for()
    rows = tab.locator(".difference tbody tr").all_inner_texts()
    assert any(row.startswith("parameter i") for row in rows) and not any("width" in row for row in rows)
    assert ids[0] in tab.url and ids[1] in tab.url  # the address has it all
    check_looks(tab)


def test_a_job_is_opened_by_its_id_and_a_stranger_sees_nothing(browser: Browser, shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "ledger" / "hold").unlink()
    text = SPEC.format(ledger=tmp_path / "ledger", jobs=2)
    (shop.root / "specs" / "watched.yaml").write_text(text)
    shop.run("apply", "--yes")
    job = shop.json("list", "jobs")[0]["job"]
    with web(shop, job[:6]) as link:
        with open_tab(browser, link) as tab:
            see(tab, job)
            see(tab, "step 9", "pre.log")
            tab.reload()  # cookie and key stay
            see(tab, job)
        context = browser.new_context()
        stranger = context.new_page()
        stranger.goto(link.partition("#")[0])
        stranger.get_by_text("This page needs its link").wait_for()
        assert job not in stranger.content()
        context.close()
