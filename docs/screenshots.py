"""Draws docs/web-*.png: `python docs/screenshots.py`, with Chromium and Playwright (`invoke services`, `[dev]`).

The sweep `digits` of specs/ is run for real, and a sweep with failures beside it, while a browser looks at the page of
`monkey web`. What the console says, and what axe-core finds, ends the script.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent)]

from tests.acceptance.shop import Shop, until  # noqa: E402
from tests.browser import find_faults, open_browser, open_tab  # noqa: E402

#: Trains nothing: curves with noise, as a training has them; some of its jobs fail.
TRAIN = """\
import argparse, math, random, time
import monkey
parser = argparse.ArgumentParser()
for name in ("lr", "batch", "seed"):
    parser.add_argument(f"--{name}", type=float)
told = parser.parse_args()
dice = random.Random(f"{told}")
for step in range(200):
    loss = 2 * math.exp(-2 * step * told.lr) + 0.1 + told.batch / 5000 + dice.gauss(0, 0.03)
    monkey.log({"train_loss": loss, "val_loss": loss + 0.1 + abs(dice.gauss(0, 0.05))}, step=step)
    if step % 10 == 0:
        print(f"step {step}: loss {loss:.4f}", flush=True)
    time.sleep(0.01)
    if told.batch == 512 and told.seed % 3 == 0 and step > 40:
        raise SystemExit(f"RuntimeError: CUDA out of memory: tried to allocate {round(told.batch)} MiB")
"""
SPEC = """\
name: schedule
command: python3 train.py --lr {lr} --batch {batch} --seed {seed}
parameters:
  lr: [0.001, 0.01, 0.1]
  batch: [32, 128, 512]
  seed: {range: [0, 8]}
metric: {name: val_loss}
code: {include: [train.py]}
"""
#: Pictures by what they show, each with the query, the colour scheme and the width.
PICTURES = {
    "sweep": ("?sweep=schedule&top=30", "light", 1240),
    "sweep-dark": ("?sweep=digits", "dark", 1240),
    "job": ("?sweep=digits&job={best}&against={next}", "light", 1240),
    "form": ("?view=edit", "light", 1240),
    "narrow": ("?sweep=schedule&top=30", "light", 420),
}


def main() -> None:
    """Run both sweeps, and look at them."""
    with tempfile.TemporaryDirectory() as scratch:
        shop = Shop(Path(scratch) / "vision")
        try:
            shutil.copytree(DOCS.parent / "specs", shop.root / "specs")
            (shop.root / "monkey.yaml").write_text("project: vision\n")
            shop.run("apply", "specs/digits.yaml", "--yes", patience=600)
            (shop.root / "train.py").write_text(TRAIN)
            (shop.root / "specs" / "schedule.yaml").write_text(SPEC)
            shop.run("apply", "specs/schedule.yaml", "--yes", "--detach")
            until(lambda: shop.states("schedule").get("failed", 0) >= 4, "some of it has run", 300, step=1)
            take_pictures(shop)
        finally:
            shop.kill_all()


def take_pictures(shop: Shop) -> None:
    """Take all pictures of a running project."""
    best, following = [row["job"] for row in shop.json("results", "digits")][:2]
    process = shop.start("web", "--no-browser")
    link = process.stdout.readline().strip()
    with open_browser() as browser:
        for name, (query, scheme, width) in PICTURES.items():
            about = {"color_scheme": scheme, "viewport": {"width": width, "height": 860}, "device_scale_factor": 1.5}
            with open_tab(browser, link, **about) as tab:
                tab.goto(link.partition("#")[0] + query.format(best=best, next=following))
                if name == "form":
                    tab.get_by_role("button", name="Plan", exact=True).click()
                    tab.locator(".plan").wait_for()
                else:
                    tab.locator(".chart > div[data-drawn]:not([data-drawn='0'])").first.wait_for()
                    tab.wait_for_timeout(1500)  # for the curves that come one after the other
                assert not (faults := find_faults(tab)), faults
                tab.screenshot(path=DOCS / f"web-{name}.png", full_page=name == "form")
    process.terminate()
    process.wait()


if __name__ == "__main__":
    main()
