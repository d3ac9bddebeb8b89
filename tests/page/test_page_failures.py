"""The card of failures: what failed alike, what such jobs have in common, and how they are run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from monkey.apply.world.world import World
from monkey.protocol.entries import ClaimEnd
from tests.browser import find_faults, open_tab
from tests.page.serving import served, write_report
from tests.unit.apply.small_project import Pen
from tests.unit.plan.text.test_terminal_codes import LINES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=window.pwned=1>"
SPEC = f"""\
name: small
command: [python3, train.py, "{{model}}", "{{seed}}"]
parameters:
  model: [a, b, "{EVIL}"]
  seed: {{range: [0, 8]}}
"""


async def fail_of_one_model(world: World, pen: Pen, jobs: list[str]) -> None:
    for at, job in enumerate(jobs):
        await pen.begin(job, beat=False)
        if at // 8 == 2:
            await pen.end(job, ClaimEnd.FAILED, reason="exit code 1", exit_code=1, log_tail=[f"ValueError: {at}"])
        else:
            await pen.end(job)


def test_a_kind_of_failure_shows_its_rule_a_change_and_the_verb(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, SPEC, fail_of_one_model) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        card = tab.locator(".failures details")
        card.locator("summary").click()
        assert card.locator(".failed-count").inner_text() == "8×"
        assert f"8 of 8 with model == '{EVIL}'; 0 of 16 elsewhere" in card.inner_text()
        change = card.get_by_label("Change of the spec").inner_text()
        assert f"+exclude: [{{model: '{EVIL}'}}]" in change.replace('"', "'")
        command = card.locator("code.copied").inner_text()
        assert command.startswith("monkey retry small --signature ") and len(command.split()[-1]) == 6
        assert tab.evaluate("() => window.pwned") is None and tab.locator("img").count() == 0
        assert not find_faults(tab)


#: What Python's programs write: colours, a progress bar, and a line that is long.
COLOURED, BAR, LONG = "\x1b[31mValueError\x1b[0m: bad \u202elr", "10%\r20%\r100%|####|\r", "x" * 300_000
PLAIN_SPEC = "name: small\ncommand: python3 train.py {seed}\nparameters: {seed: [1, 2]}\n"


async def fail_in_colours(world: World, pen: Pen, jobs: list[str]) -> None:
    k = await pen.begin(jobs[0], beat=False)
    pen.written[jobs[0], k] = f"{LONG}\n{BAR}\n{COLOURED}\n30%\r4".encode()
    await pen.end(jobs[0], ClaimEnd.FAILED, reason="exit code 1", exit_code=1, log_tail=[BAR, COLOURED])


def check_logs(tab: Page) -> None:
    """Compare the end of a log, beside its kind, with the log of the job: both are as a terminal leaves them."""
    card = tab.locator(".failures details")
    card.locator("summary").click()
    assert card.locator("summary code").inner_text() == "ValueError: bad lr"
    assert card.get_by_label("End of a log").inner_text() == "100%|####|\nValueError: bad lr"
    card.get_by_role("link").click()
    tab.locator("pre.log", has_text="ValueError: bad lr").wait_for()


def test_a_log_is_shown_as_a_terminal_leaves_it(browser: Browser, tmp_path: Path, shared_folder: Path) -> None:
    with served(tmp_path / "served", PLAIN_SPEC, fail_in_colours) as link, open_tab(browser, link) as tab:
        tab.get_by_role("link", name="small").click()
        # The page reads lines by a function of its own.
        read = "async (text) => (await import(new URL('assets/format.js', location.href))).plain(text)"
        assert {given: tab.evaluate(read, given) for given in LINES} == LINES
        check_logs(tab)
        assert tab.locator("pre.log").inner_text() == f"{LONG}\n100%|####|\nValueError: bad lr\n40%"
    report = write_report(tmp_path / "written", PLAIN_SPEC, fail_in_colours, shared_folder)
    with open_tab(browser, report, offline=True) as tab:
        check_logs(tab)
        assert tab.locator("pre.log").inner_text() == "100%|####|\nValueError: bad lr"
