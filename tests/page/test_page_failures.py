"""The card of failures: what failed alike, what such jobs have in common, and how they are run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from monkey.apply.world.world import World
from monkey.protocol.entries import ClaimEnd
from tests.browser import find_faults, open_tab
from tests.page.serving import served
from tests.unit.apply.small_project import Pen

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
