"""Tables and curves of a sweep that has ended; `benchmarks/page.py` says how long they take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.shop import until
from tests.browser import open_tab
from tests.page.serving import make_loss, play_ends, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

SPEC = """\
name: small
command: python3 train.py --i {{i}}
parameters: {{i: {{range: [0, {jobs}]}}}}
metric: {{name: loss}}
"""


def test_a_large_table_is_sorted_by_numbers_both_ways(browser: Browser, tmp_path: Path) -> None:
    """As texts, 10 would stand before 2, 999 before 9,989, and 0.99 before 9.9e-6."""
    jobs = 10_000
    orders = {"i": range(jobs), "loss": sorted(range(jobs), key=make_loss)}
    with served(tmp_path, SPEC.format(jobs=jobs), play_ends()) as link, open_tab(browser, link) as tab:
        tab.goto(f"{link.partition('#')[0]}?sweep=small&sort=time")
        for name, places in orders.items():
            head = tab.locator("th", has=tab.get_by_role("button", name=name, exact=True))
            for way, wanted in (("ascending", places[:20]), ("descending", places[:-21:-1])):
                head.get_by_role("button").click()
                tab.locator(f"th[aria-sort={way}]", has_text=name).wait_for()
                shown = tab.locator("tbody tr[aria-rowindex] td:nth-child(2)").all_inner_texts()
                assert [int(text) for text in shown[:20]] == list(wanted)
        assert tab.locator("table").get_attribute("aria-rowcount") == "10001"


#: The colours of pixels that are no background, in the lowest and the highest tenth of a chart, and how many.
INKED = """() => {
  const canvas = document.querySelector('.curves canvas');
  const { width, height } = canvas;
  const ink = (from, to) => {
    const part = [width * 0.051, from * height, width * 0.9, (to - from) * height];
    const { data } = canvas.getContext('2d').getImageData(...part);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 60 && data[at] !== data[at + 1]) count += 1;
    return count;
  };
  return [ink(0.03, 0.15), ink(0.7, 0.85)];
}"""


def test_a_chart_shows_all_of_its_values_and_a_zoom_what_is_in_it(browser: Browser, tmp_path: Path) -> None:
    """The curves fall from 1 to nearly 0: there is ink at the top and at the bottom; zoomed into the end, too."""
    with (
        served(tmp_path, SPEC.format(jobs=10), play_ends(10, 300)) as link,
        open_tab(browser, link, "getImageData") as tab,
    ):
        tab.goto(f"{link.partition('#')[0]}?sweep=small&metric=loss")
        tab.locator(".curves .chart > div[data-drawn='10']").wait_for()
        assert min(tab.evaluate(INKED)) > 20
        place = tab.locator(".curves .u-over").bounding_box()
        y = place["y"] + place["height"] / 2
        tab.mouse.move(place["x"] + 0.7 * place["width"], y)
        tab.mouse.down()
        tab.mouse.move(place["x"] + 0.95 * place["width"], y, steps=5)
        before = tab.evaluate(INKED)
        tab.mouse.up()
        until(lambda: tab.evaluate(INKED) != before and min(tab.evaluate(INKED)) > 20, "the zoom fills the chart")
