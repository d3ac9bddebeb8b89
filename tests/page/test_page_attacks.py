"""Strings of jobs, specs and the store that would be scripts, markup or control characters: each is only text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from monkey.apply.orders import cancel_sweep
from monkey.apply.world.world import World
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.record.shipment import METRICS
from tests.browser import open_tab
from tests.fuzz.corpus import ESCAPE
from tests.page.serving import served, write_report
from tests.unit.apply.small_project import Pen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

RUN = "window.pwned=1"
HOSTILE = [
    *(f"<script>{RUN}</script>", f"</script><script>{RUN}</script>", f"<img src=x onerror={RUN}>", "<b>bold</b>"),
    *(f"<svg onload={RUN}>", f"<iframe srcdoc='<script>parent.{RUN}</script>'>", f"<body onload={RUN}>", "<!--", "-->"),
    *(f"javascript:{RUN}", f"JaVaScRiPt:{RUN}", f"data:text/html,<script>{RUN}</script>", f"vbscript:{RUN}"),
    *(f"' onmouseover='{RUN}", f'" onfocus="{RUN}" autofocus="', f"`${{{RUN}}}`", "${7*7}", "{{7*7}}", "<%= 7*7 %>"),
    *(f"<a href='javascript:{RUN}'>x</a>", f"<details open ontoggle={RUN}>", "<style>*{display:none}</style>"),
    *(
        "<meta http-equiv=refresh content='0;url=//evil.example'>",
        "<base href=//evil.example>",
        "<link rel=x href=//e>",
    ),
    *("<form action=//evil.example><input>", "<math><mtext><style><img>", "]]>", "&lt;script&gt;", "&#x3c;b&#x3e;"),
    *("__proto__", "constructor", "toString", "hasOwnProperty", "../../etc/passwd", "\u202eevil\u2066", ESCAPE),
    *("%3Cscript%3E", "\\u003cscript\\u003e", "=cmd|' /C calc'!A0"),
]
SPEC = f"""\
name: small
command: python3 train.py --x {{x}}
parameters:
  x: {json.dumps(HOSTILE)}
  "constructor": [1, 2]
  "__proto__": [3]
env: {{EVIL: {json.dumps(HOSTILE[0])}}}
metric: {{name: {json.dumps(HOSTILE[2])}}}
"""
#: What would turn other texts around, or not show.
TURNS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Reads all that a user may see or hear of a page: its text, what is said of its parts, and its tab's title.
SHOWN = """() => document.title + document.body.textContent + ['title', 'aria-label', 'placeholder', 'alt']
    .flatMap((name) => [...document.querySelectorAll(`[${name}]`)].map((one) => one.getAttribute(name))).join(' ')"""
#: What a page of ours never has, wherever it comes from.
FOREIGN = "iframe, object, embed, img, svg script, form[action], base, body meta, #app script, #app style, #app link"


async def be_hostile(world: World, pen: Pen, jobs: list[str]) -> None:
    """Have jobs fail and succeed with such strings as all that they may say."""
    for at, text in enumerate(HOSTILE):
        job = jobs[2 * at]
        k = await pen.begin(job, beat=False)
        names = {name: {"last": 0.5, "min": 0.1, "max": 1, "step": 3, "count": 3} for name in (text, HOSTILE[2])}
        lines = "".join(f'{{"t":1,"step":{step},"m":{json.dumps({text: step})}}}\n' for step in range(3))
        await world.at.put(f"{world.keys.out(job, k)}{METRICS}0.jsonl", lines.encode())
        pen.written[job, k] = f"{text}\n".encode()
        about = {"outputs": {f"{text}/x": "0" * 64}, "log_tail": [text, text], "metrics": names}
        ends = {"reason": text, "exit_code": 1} if at % 2 else {}
        await pen.end(job, ClaimEnd.FAILED if at % 2 else ClaimEnd.SUCCEEDED, **ends, **about)
    pen.heart.vitals = lambda: {"alert": HOSTILE[2]}
    await pen.heart.beat()
    await cancel_sweep(world, "small", HOSTILE[0])


def check_page(tab: Page, scheme: str = "http:") -> None:
    assert tab.evaluate("() => window.pwned") is None
    assert tab.locator(FOREIGN).count() == 0
    links = tab.evaluate("() => [...document.querySelectorAll('a')].map((one) => one.protocol)")
    assert set(links) == {scheme}
    shown = tab.evaluate(SHOWN)
    assert not (found := TURNS.findall(shown)), found  # nothing turns its neighbours around
    assert tab.evaluate("() => Object.keys(Object.prototype).length + Object.keys({}).length") == 0


def test_forty_hostile_strings_are_only_text(browser: Browser, tmp_path: Path) -> None:
    assert len(set(HOSTILE)) == 40
    with served(tmp_path, SPEC, be_hostile) as link, open_tab(browser, link, "404") as tab:
        tab.locator(".problems summary").click()
        tab.get_by_text(HOSTILE[2]).first.wait_for()  # what the agent complains of
        tab.get_by_role("link", name="small").click()
        tab.get_by_text(HOSTILE[0]).first.wait_for()
        tab.locator(".failures").wait_for()
        for text in (
            "columns=all&top=1000",
            "sort=p:constructor",
            "metric=__proto__",
            f"where={HOSTILE[0]}",
            "sort=m:x",
        ):
            tab.goto(f"{link.partition('#')[0]}?sweep=small&{text}")
            tab.locator("h2", has_text="Jobs").wait_for()
            check_page(tab)
        tab.goto(f"{link.partition('#')[0]}?sweep=small&columns=all")
        ids = tab.locator("tbody tr[aria-rowindex] a code").all_inner_texts()
        for job in ids[:12]:
            tab.goto(f"{link.partition('#')[0]}?sweep=small&job={job}&against={ids[-1]}")
            tab.locator(".difference").wait_for()
            tab.locator("pre.log").wait_for()
            check_page(tab)
        for text in ("view=machines", f"sweep={HOSTILE[0]}", f"sweep=small&job={HOSTILE[2]}", "view=__proto__"):
            tab.goto(f"{link.partition('#')[0]}?{text}")
            tab.locator("main").get_by_text(HOSTILE[2]).first.wait_for(state="attached")
            check_page(tab)


def test_forty_hostile_strings_are_only_text_in_a_report(browser: Browser, tmp_path: Path, shared_folder: Path) -> None:
    link = write_report(tmp_path, SPEC, be_hostile, shared_folder)
    with open_tab(browser, link, offline=True) as tab:
        assert tab.evaluate("() => document.querySelectorAll('script, style, link, meta').length") == 10
        tab.get_by_text(HOSTILE[0]).first.wait_for()
        tab.locator(".failures").wait_for()
        for text in ("columns=all&top=1000", "sort=p:constructor", "metric=__proto__", f"where={HOSTILE[0]}"):
            tab.evaluate("(text) => { location.hash = text }", f"sweep=small&{text}")
            tab.locator("h2", has_text="Jobs").wait_for()
            check_page(tab, "file:")
        tab.evaluate("() => { location.hash = 'sweep=small&columns=all' }")
        ids = tab.locator("tbody tr[aria-rowindex] a code").all_inner_texts()
        for job in ids[:4]:
            tab.evaluate("(text) => { location.hash = text }", f"sweep=small&job={job}&against={ids[-1]}")
            tab.locator("h1", has_text=job).wait_for()
            tab.locator(".difference").wait_for()
            check_page(tab, "file:")
        for text in (f"sweep={HOSTILE[0]}", f"sweep=small&job={HOSTILE[2]}", "sweep=__proto__&job=constructor"):
            tab.evaluate("(text) => { location.hash = text }", text)
            tab.get_by_text("this report does not have that").first.wait_for()
            check_page(tab, "file:")
