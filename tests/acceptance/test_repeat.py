"""A random search whose draws are repeated: run, grouped, compared, and repeated once more."""

from __future__ import annotations

import io

import pytest

from tests.acceptance.shop import Shop

JOB = """\
import random, sys
import monkey

p, loss = monkey.params(), float(sys.argv[1])
noise = random.Random(f"{p['lr']} {p['trial']}").gauss(0, 0.01)
monkey.log("acc", 0.9 - p["lr"] + noise - loss)
"""
SPEC = """\
command: [python3, train.py, '{loss}']
method: random
run_cap: 4
parameters: {{lr: {{loguniform: [1e-4, 0.1]}}}}
repeat: {{trial: {trials}}}
metric: {{name: acc, goal: maximize}}
code: {{include: [train.py]}}
outputs: []
"""


@pytest.mark.needs("pandas")
def test_draws_with_repeats_are_grouped_and_compared(shop: Shop) -> None:
    import pandas

    (shop.root / "train.py").write_text(JOB)
    shop.spec(SPEC.format(loss=0, trials=2), name="main")
    shop.spec(SPEC.format(loss=0.05, trials=3), name="pull")
    assert "× trial{0,1,2} = 12 jobs" in shop.run("plan").stdout
    shop.run("apply")
    frame = pandas.read_csv(io.StringIO(shop.run("results", "pull", "--csv").stdout))
    spread = frame.groupby("lr")["acc"].agg(["mean", "std", "count"]).sort_values("mean", ascending=False)
    groups = shop.json("results", "pull", "--group-by", "lr")
    assert [group["parameters"]["lr"] for group in groups] == list(spread.index)
    for group, (mean, std, count) in zip(groups, spread.itertuples(index=False), strict=True):
        acc = group["metrics"]["acc"]
        assert (acc["mean"], acc["std"], acc["n"]) == (pytest.approx(mean), pytest.approx(std), count) and count == 3
        assert group["mixed"] == []
    # One more repeat of main: its jobs stay, and only the new ones run.
    first = {row["job"]: row["metrics"] for row in shop.json("results", "main")}
    shop.spec(SPEC.format(loss=0, trials=3), name="main")
    shop.run("plan", "specs/main.yaml")
    assert "4 new" in shop.run("plan", "specs/main.yaml").stdout.splitlines()[-2]
    shop.run("apply")
    rows = {row["job"]: row["metrics"] for row in shop.json("results", "main")}
    assert len(rows) == 12 and first.items() <= rows.items()
    compared = shop.json("compare", "main", "pull", code=2)
    assert [each["parameters"].keys() for each in compared["configurations"]] == [{"lr"}] * 4
    assert [len(each["pairs"]) for each in compared["configurations"]] == [3] * 4
    mixed = shop.run("results", "main", "--group-by", "trial").stdout
    assert "by lr (--group-by trial,lr keeps them apart)" in mixed


def test_seeds_of_a_grid_that_become_repeats_run_nothing(shop: Shop) -> None:
    (shop.root / "train.py").write_text("import monkey\nmonkey.log('acc', 0.5)\n")
    text = "command: [python3, train.py]\ncode: {include: [train.py]}\noutputs: []\n"
    shop.spec(f"{text}parameters: {{lr: [1, 2], seed: [0, 1, 2]}}\n", name="main")
    shop.run("apply")
    shop.spec(f"{text}parameters: {{lr: [1, 2]}}\nrepeat: 3\n", name="main")
    told = shop.run("plan").stdout
    assert "1 setting changes" in told and "new" not in told
    shop.run("apply")
    assert "no changes" in shop.run("plan").stdout.lower()
