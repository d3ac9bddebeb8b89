"""How long the page of `monkey web` takes in a real Chromium, with a server that is warm: tables, sorting, curves.

Bars: 10,000 jobs are painted within 0.5 s and sorted within 0.2 s, 100,000 within 2 s each. 1,000 curves of 1,000
points are drawn within 1 s after their data came. Beside each stands what a bare script takes in the same page: it
fetches and parses the same rows, sorts as many numbers, strokes as many lines on a canvas of that size. The ratio is
the time of the curves over that of the bare lines. CPU is that of the page's process, all of its threads.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from _common import report

from tests.browser import check_browser, open_browser, open_tab
from tests.page.serving import play_ends, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 5
#: Jobs, with the most seconds that they may take to be painted, and to be sorted.
TABLES = ((10_000, 0.5, 0.2), (100_000, 2.0, 2.0))
CURVES, POINTS, DRAWN_WITHIN = 1_000, 1_000, 1.0
#: Chromium warns of a canvas that is read; all else in its console is a fault.
READING = "getImageData"

SPEC = """\
name: small
command: python3 train.py --lr {{lr}} --seed {{seed}}
parameters:
  lr: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30]
  seed: {{range: [0, {seeds}]}}
metric: {{name: loss}}
"""
#: Ends once the browser has painted what was changed before.
SHOWN = "const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
#: Milliseconds since the navigation began, once a row is painted.
PAINTED = f"""async () => {{
  {SHOWN}
  while (!document.querySelector('tbody tr[aria-rowindex]')) await new Promise(requestAnimationFrame);
  await shown();
  return performance.now();
}}"""
#: Milliseconds from a click on a heading until rows are painted in another order.
SORTED = f"""async (name) => {{
  {SHOWN}
  const head = () => [...document.querySelectorAll('th')].find((one) => one.textContent.startsWith(name));
  const before = head().ariaSort;
  const began = performance.now();
  head().querySelector('button').click();
  while (head().ariaSort === before) await new Promise(requestAnimationFrame);
  await shown();
  return performance.now() - began;
}}"""
#: Milliseconds from the last answer with curves until all of them are drawn: reading pixels ends the drawing.
DRAWN = f"""async (count) => {{
  {SHOWN}
  const chart = document.querySelector('.curves .chart > div');
  while (Number(chart.dataset.drawn) < count) await new Promise(requestAnimationFrame);
  chart.querySelector('canvas').getContext('2d').getImageData(0, 0, 1, 1);
  await shown();
  const came = performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/curves/'));
  return performance.now() - Math.max(...came.map((one) => one.responseEnd));
}}"""
#: Milliseconds to fetch and parse all rows, as the page does.
BARE_ROWS = f"""async () => {{
  {SHOWN}
  const began = performance.now();
  const key = localStorage.getItem('monkey-key');
  await (await fetch('api/sweep/small?since=0', {{ headers: {{ 'X-Monkey-Key': key }} }})).json();
  await shown();
  return performance.now() - began;
}}"""
#: Milliseconds to sort as many places by a number.
BARE_SORT = f"""async (count) => {{
  {SHOWN}
  const keys = Array.from({{ length: count }}, (_, at) => (at * 7919) % 100003);
  const began = performance.now();
  keys.map((_, at) => at).sort((a, b) => keys[a] - keys[b] || a - b);
  await shown();
  return performance.now() - began;
}}"""
#: Make lines of the shape that the jobs' curves have, in pixels of a canvas as large as the chart's.
MAKE_LINES = """([curves, points]) => {
  const { height } = document.querySelector('.curves canvas');
  const value = (place, step) => 1 / (1 + step / (1 + place)) + ((step * place) % 7) / 50;
  const line = (place) => Array.from({ length: points }, (_, step) => height * (1 - value(place, step) / 1.2));
  window.bareLines = Array.from({ length: curves }, (_, place) => line(place));
}"""
#: Milliseconds to stroke them.
BARE_LINES = f"""async () => {{
  {SHOWN}
  const canvas = document.createElement('canvas');
  const {{ width, height }} = document.querySelector('.curves canvas');
  Object.assign(canvas, {{ width, height }});
  document.body.append(canvas);
  const began = performance.now();
  const context = canvas.getContext('2d');
  context.lineJoin = 'round';
  context.lineWidth = devicePixelRatio;
  context.strokeStyle = 'hsl(172 62% 40% / 0.4)';
  for (const line of window.bareLines) {{
    context.beginPath();
    line.forEach((at, step) => context.lineTo((step / line.length) * width, at));
    context.stroke();
  }}
  context.getImageData(0, 0, 1, 1);
  await shown();
  const taken = performance.now() - began;
  canvas.remove();
  return taken;
}}"""


class Taken(NamedTuple):
    """Seconds of wall, and of the CPU of the page's process, that something took."""

    seconds: float
    cpu: float


class Watch:
    """What a tab's process has used, as Chromium counts it; its count of the main thread begins anew with each page."""

    def __init__(self, tab: Page) -> None:
        """Watch a tab."""
        self._asked = tab.context.new_cdp_session(tab)
        self._asked.send("Performance.enable")

    def _cpu(self) -> float:
        metrics = self._asked.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "ProcessTime")

    def measure(self, act: Callable[[], float]) -> Taken:
        """Do something that returns its milliseconds."""
        before = self._cpu()
        return Taken(act() / 1000, self._cpu() - before)


def take_medians(rounds: list[dict[str, Taken]]) -> dict[str, Taken]:
    """Return the median of each thing's seconds, and of its CPU."""
    return {
        name: Taken(*(statistics.median(each) for each in zip(*(one[name] for one in rounds), strict=True)))
        for name in rounds[0]
    }


def open_again(tab: Page, address: str) -> float:
    """Load the page anew, and return the milliseconds until its rows are painted."""
    tab.goto(address)
    return tab.evaluate(PAINTED)


def measure_table(browser: Browser, root: Path, jobs: int) -> dict[str, Taken]:
    """Paint and sort so many jobs; the slower of two columns counts."""
    with served(root, SPEC.format(seeds=jobs // 10), play_ends()) as link, open_tab(browser, link) as tab:
        address = f"{link.partition('#')[0]}?sweep=small&metric=accuracy"
        open_again(tab, address)  # the server is warm then
        watch, rounds = Watch(tab), []
        for _ in range(ROUNDS):
            found = {"painted": watch.measure(lambda: open_again(tab, address))}
            found["sorted"] = max(watch.measure(lambda n=n: tab.evaluate(SORTED, n)) for n in ("seed", "accuracy"))
            found["bare rows"] = watch.measure(lambda: tab.evaluate(BARE_ROWS))
            found["bare sort"] = watch.measure(lambda: tab.evaluate(BARE_SORT, jobs))
            rounds.append(found)
    return take_medians(rounds)


def measure_curves(browser: Browser, root: Path) -> dict[str, Taken]:
    """Draw curves whose data has come; their CPU is that of the whole page."""
    spec, scene = SPEC.format(seeds=CURVES // 10), play_ends(CURVES, POINTS)
    with served(root, spec, scene) as link, open_tab(browser, link, READING) as tab:
        address = f"{link.partition('#')[0]}?sweep=small&metric=loss&top={CURVES}&points={POINTS}"

        def draw() -> float:
            open_again(tab, address)
            return tab.evaluate(DRAWN, CURVES)

        draw()
        watch, rounds = Watch(tab), []
        for _ in range(ROUNDS):
            found = {"drawn": watch.measure(draw)}
            tab.evaluate(MAKE_LINES, [CURVES, POINTS])
            found["bare lines"] = watch.measure(lambda: tab.evaluate(BARE_LINES))
            rounds.append(found)
    return take_medians(rounds)


def show_figures(title: str, found: dict[str, Taken], bars: dict[str, float]) -> None:
    """Print the figures of one scene, and which of them miss their bar."""
    print(title)
    for name, one in found.items():
        bar = f", bar {bars[name]:g} s: {'met' if one.seconds <= bars[name] else 'MISSED'}" if name in bars else ""
        print(f"{name:>12}: {one.seconds:6.3f} s, CPU {one.cpu:6.3f} s{bar}", flush=True)


def main() -> None:
    """Measure and report."""
    check_browser()
    figures, began = {}, os.getloadavg()
    with tempfile.TemporaryDirectory() as name, open_browser() as browser:
        root = Path(name)
        os.environ |= {"XDG_STATE_HOME": f"{root}/s", "XDG_CACHE_HOME": f"{root}/c", "XDG_CONFIG_HOME": f"{root}/g"}
        for jobs, painted, ordered in TABLES:
            title = f"{jobs} jobs"
            figures[title] = measure_table(browser, root / str(jobs), jobs)
            show_figures(title, figures[title], {"painted": painted, "sorted": ordered})
        title = f"{CURVES} curves of {POINTS} points"
        curves = figures[title] = measure_curves(browser, root / "curves")
        show_figures(title, curves, {"drawn": DRAWN_WITHIN})
    drawn, bare = curves["drawn"].seconds, curves["bare lines"].seconds
    told = {
        title: {name: {field: round(value, 3) for field, value in one._asdict().items()} for name, one in found.items()}
        for title, found in figures.items()
    }
    load = [round(each, 1) for each in (began[0], os.getloadavg()[0])]
    unit = "seconds until curves are drawn, median"
    report("page", unit, drawn, {"bare lines": bare}, drawn / bare, of=told, load=load)


if __name__ == "__main__":
    main()
