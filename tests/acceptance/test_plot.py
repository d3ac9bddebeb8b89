"""`monkey plot` and `monkey metrics` of a real sweep."""

from __future__ import annotations

import csv

import pytest

from tests.acceptance.shop import Shop

JOB = """\
import monkey

p = monkey.params()
for step in range(1, 31):
    monkey.log("loss", p["lr"] / step, step=step)
"""


@pytest.mark.needs("plotext")
@pytest.mark.needs("matplotlib")
def test_a_sweep_is_drawn(shop: Shop) -> None:
    (shop.root / "log.py").write_text(JOB)
    shop.spec("command: python3 log.py\nparameters: {lr: [1.0, 2.0, 4.0]}\nmetric: {name: loss}\noutputs: []\n")
    shop.run("apply")
    lines = shop.run("metrics", "sweep").stdout.splitlines()
    assert [line.split()[1:6] for line in lines[1:]] == [
        [f"lr={lr}", "loss", lr[0], f"{float(lr) / 30:.6g}", "30"] for lr in ("1.0", "2.0", "4.0")
    ]
    points = list(csv.DictReader(shop.run("metrics", "sweep", "--csv").stdout.splitlines()))
    ids = {job["job"]: job["parameters"]["lr"] for job in shop.json("metrics", "sweep", "--metric", "loss")}
    assert [float(one["value"]) for one in points] == [ids[one["job"]] / int(one["step"]) for one in points]
    assert len(points) == 90
    unknown = shop.run("metrics", "sweep", "--metric", "los", code=1).stderr
    assert "no job logged 'los'" in unknown and "did you mean 'loss'?" in unknown
    drawn = shop.run("plot", "sweep", "--top", "2")
    assert drawn.stdout.splitlines()[-2:] == ["  ** lr=1.0", "  oo lr=2.0"]
    assert drawn.stderr == "2 curves of 3 jobs, the best first; --top N draws others\n"
    assert "loss by lr" in shop.run("plot", "sweep", "--kind", "scatter").stdout
    assert "BEST TO WORST" in shop.run("plot", "sweep", "--kind", "parallel").stdout
    assert "loss.png written" in shop.run("plot", "sweep", next(iter(ids)), "-o", "loss.png").stdout
    assert (shop.root / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert "ends in .png or .svg or .html" in shop.run("plot", "sweep", "-o", "x.gif", code=1).stderr
