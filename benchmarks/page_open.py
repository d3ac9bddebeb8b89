"""How the memory of a page grows that stays open on a sweep of 200 jobs at work: `page_open.py MINUTES` (default 3).

Bar: the heap of the page's scripts grows by 20 MB an hour at most. The heap is taken after a collection, once a
minute; the first that counts is taken once a tenth of the time is over, when the table and the curves are there. The
jobs are real ones, eight at a time, and each logs a metric and a line a second: they take as long as the page is open.
Beside it stands the memory of the server, `monkey web`. The ratio is the growth over the bar.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from _common import report

from tests.acceptance.shop import Shop
from tests.browser import check_browser, open_browser, open_tab

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

JOBS, SLOTS = 200, 8
#: Bytes that the heap may grow in an hour.
BAR = 20e6
TRAIN = """\
import sys, time
import monkey
for step in range(int(sys.argv[1])):
    monkey.log({"loss": 1 / (1 + step), "accuracy": step / 100}, step=step)
    print(f"step {step}", flush=True)
    time.sleep(1)
"""
SPEC = """\
name: open
command: python3 train.py {seconds} {{i}}
parameters: {{i: {{range: [0, {jobs}]}}}}
metric: {{name: loss}}
resources: {{cpus: 0.1, memory: 16MiB}}
"""


class Look(NamedTuple):
    """What a look at the open page found."""

    minute: float
    #: Bytes of the page's scripts, after a collection.
    heap: int
    #: Bytes of the server's resident memory.
    server: int
    ended: int


def make_shop(base: Path, minutes: float) -> Shop:
    """Write a project whose sweep takes so many minutes."""
    shop = Shop(base)
    (shop.root / "monkey.yaml").write_text(f"project: shop\nproviders: {{local: {{max_slots: {SLOTS}}}}}\n")
    (shop.root / "train.py").write_text(TRAIN)
    (shop.root / "specs").mkdir()
    # The last jobs still run when the watch ends.
    seconds = max(1, int(minutes * 66 * SLOTS / JOBS))
    (shop.root / "specs" / "open.yaml").write_text(SPEC.format(seconds=seconds, jobs=JOBS))
    return shop


def read_resident(pid: int) -> int:
    """Return the bytes of a process's resident memory."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def measure_heap(asked: CDPSession) -> int:
    """Return the bytes of the page's heap that are in use after a collection."""
    asked.send("HeapProfiler.collectGarbage")
    return int(asked.send("Runtime.getHeapUsage")["usedSize"])


def watch_page(shop: Shop, minutes: float) -> list[Look]:
    """Look at the open page once a minute, ten times at least."""
    looks: list[Look] = []
    server = shop.start("web", "--no-browser")
    try:
        link = server.stdout.readline().strip()
        with open_browser() as browser, open_tab(browser, link) as tab:
            tab.get_by_role("link", name="open").click()
            tab.locator(".curves canvas").first.wait_for()
            asked = tab.context.new_cdp_session(tab)
            began, every = time.monotonic(), min(60, minutes * 6)
            while (passed := time.monotonic() - began) < minutes * 60:
                tab.wait_for_timeout(1000 * (every - passed % every))
                ended = tab.locator(".chips button:has(.succeeded) b").all_inner_texts()
                minute, heap, resident = (time.monotonic() - began) / 60, measure_heap(asked), read_resident(server.pid)
                looks.append(Look(minute, heap, resident, int(ended[0]) if ended else 0))
                sizes = f"heap {heap / 1e6:6.2f} MB, server {resident / 1e6:5.1f} MB"
                print(f"minute {minute:5.1f}: {sizes}, {looks[-1].ended} jobs ended", flush=True)
    finally:
        server.terminate()
        server.communicate(timeout=60)
    return looks


def main() -> None:
    """Watch and report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("minutes", nargs="?", type=float, default=3.0)
    minutes = options.parse_args().minutes
    check_browser()
    with tempfile.TemporaryDirectory() as name:
        shop = make_shop(Path(name) / "shop", minutes)
        try:
            shop.run("apply", "--detach", "--yes")
            looks = watch_page(shop, minutes)
        finally:
            shop.kill_all()
    first, last = looks[len(looks) // 10], looks[-1]
    growth = last.heap - first.heap
    allowed = BAR * (last.minute - first.minute) / 60
    told = {"minutes": round(last.minute - first.minute, 1), "jobs_ended": last.ended}
    server = {"server_mb": [round(one.server / 1e6, 1) for one in (first, last)]}
    load = [round(each, 1) for each in os.getloadavg()]
    report("page_open", "MB that the heap grew", growth / 1e6, {}, growth / allowed, **told, **server, load=load)


if __name__ == "__main__":
    main()
