"""How large the file of `monkey report` is, how long it takes to write, and how soon a browser shows it by file://.

1,000 jobs log 3 metrics over 1,000 steps: curves that fall, with noise of 2 %, since noise does not compress. Bar: at
most 2 MB, with at least 100 points of each curve. The peer is the JSON that the server of `monkey web` answers for the
same points, compressed and written in base64 likewise, with the page's own files. The ratio is ours over that.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import random
import statistics
import tempfile
import zlib
from pathlib import Path

from _common import MONKEY, report, run
from page import PAINTED

from monkey.apply.world.world import World
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.journal import JournalBlock, make_record
from monkey.protocol.layout import spell_number
from monkey.protocol.record.shipment import METRICS
from monkey.web.curve_cache import CurveCache
from monkey.web.live_store import LiveStore
from monkey.web.report.report_data import ReportData
from monkey.web.report.report_file import build_report
from tests.browser import open_browser, open_tab
from tests.unit.apply.small_project import apply, opened, write_project

JOBS, STEPS, NAMES = 1_000, 1_000, ("loss", "val_loss", "accuracy")
ROUNDS = 3
#: Bytes of the file, and points of each curve.
LARGEST, POINTS = 2_000_000, 100
SPEC = f"""\
name: small
command: python3 train.py --lr {{lr}} --seed {{seed}}
parameters:
  lr: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30]
  seed: {{range: [0, {JOBS // 10}]}}
metric: {{name: loss}}
"""


async def play(root: Path) -> None:
    """Apply the spec, and have all jobs succeeded, with curves."""
    write_project(root, SPEC)
    dice = random.Random(1)
    async with opened(root) as world:
        block = JournalBlock()
        for place, job in enumerate((await apply(world)).wanted[0].desired.table.ids):
            await log_job(world, block, job, dice, place)
        await world.at.put(world.keys.segment("local/pen/1", 1), block.encode())


async def log_job(world: World, block: JournalBlock, job: str, dice: random.Random, place: int) -> None:
    """Keep a job's log, and its file of metrics."""
    lines, values = list[str](), dict[str, list[float]]()
    for step in range(STEPS):
        told = {
            name: math.exp(-step / (200 + place % 300) * (1 + at)) + 0.1 + dice.gauss(0, 0.02)
            for at, name in enumerate(NAMES)
        }
        lines.append(json.dumps({"t": 1.0 + step, "step": step, "m": told}) + "\n")
        for name, value in told.items():
            values.setdefault(name, []).append(value)
    summary = {
        name: {"last": each[-1], "min": min(each), "max": max(each), "step": STEPS - 1, "count": STEPS, "nonfinite": 0}
        for name, each in values.items()
    }
    end = EndEntry(
        ClaimEnd.SUCCEEDED, "local/pen/1", 1, "small", seconds=1.5 + place, at=1.79e9 + place, out=1, metrics=summary
    )
    for k, data in enumerate((Claim("local/pen/1", 1, 1, "small").encode(), end.encode()), 1):
        await world.at.put(world.keys.job_log(job) + spell_number(k), data)
    await world.at.put(f"{world.keys.out(job, 1)}{METRICS}0.jsonl", "".join(lines).encode())
    block.add(make_record(job, 2, end))


async def measure_plain(root: Path) -> int:
    """Return the bytes of a file that has the curves as the server's JSON, and nothing of jobs."""
    async with opened(root) as world:
        live = LiveStore(world)
        view = (await live.snapshot()).sweeps["small"]
        cache = CurveCache(live)
        told = {
            job: {name: curve.serialize(POINTS) for name, curve in (await cache.read(view, job)).curves.items()}
            for job in view.ids
        }
    packed = base64.b64encode(zlib.compress(json.dumps(told, separators=(",", ":")).encode(), 9))
    return len(packed) + len(build_report(ReportData()))


def open_file(file: Path) -> list[float]:
    """Return seconds until the rows of the file are painted, of each round."""
    with open_browser() as browser, open_tab(browser, file.as_uri(), offline=True) as tab:
        found = []
        for _ in range(ROUNDS):
            tab.goto("about:blank")
            tab.goto(file.as_uri())
            found.append(tab.evaluate(PAINTED) / 1000)
        tab.locator(".curves .chart > div[data-drawn='10']").wait_for()
    return found


def main() -> None:
    """Measure and report."""
    began = os.getloadavg()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ |= {"XDG_STATE_HOME": f"{root}/s", "XDG_CONFIG_HOME": f"{root}/g"}
        asyncio.run(play(root))
        runs = [run([MONKEY, "report", "small", "-o", "report.html"], root) for _ in range(ROUNDS)]
        file = root / "report.html"
        size, plain = file.stat().st_size, asyncio.run(measure_plain(root))
        painted = statistics.median(open_file(file))
    seconds, cpu = (statistics.median(values) for values in zip(*((one.seconds, one.cpu) for one in runs), strict=True))
    peak = max(one.peak for one in runs)
    print(f"{size:,} bytes (bar {LARGEST:,}: {'met' if size <= LARGEST else 'MISSED'}); as plain JSON {plain:,}")
    print(
        f"written in {seconds:.1f} s, CPU {cpu:.1f} s, {peak / 1e6:.0f} MB; painted {painted:.3f} s after it is opened"
    )
    of = {"seconds": round(seconds, 1), "cpu": round(cpu, 1), "peak": peak, "painted": round(painted, 3)}
    load = [round(each, 1) for each in (began[0], os.getloadavg()[0])]
    report("report", "bytes of the file", size, {"plain JSON": plain}, size / plain, of=of, load=load)


if __name__ == "__main__":
    main()
