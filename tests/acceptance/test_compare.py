"""`monkey compare` of real sweeps: a regression, none, and a HEAD that cannot show that there is none."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from textwrap import dedent

from tests.acceptance.shop import Shop

#: Noise that the seed alone decides, and a loss of the second configuration.
JOB = """\
import random, sys
import monkey

p, loss = monkey.params(), float(sys.argv[1])
noise = random.Random(p["seed"])
if loss < 0 and p["seed"] == 2:
    raise SystemExit(3)
monkey.log("acc", 0.9 + noise.gauss(0, 0.01) - (loss + noise.gauss(0, 0.001)) * (p["lr"] == 0.2 and loss > 0))
"""
SPEC = """\
command: [python3, train.py, '{loss}']
parameters: {{lr: [0.1, 0.2], seed: {{range: [0, 3]}}}}
metric: {{name: acc, goal: maximize}}
code: {{include: [train.py]}}
outputs: []
"""


def run_ci_lines(shop: Shop) -> list[str]:
    """Run the lines of docs/ci.md, GitHub's and GitLab's, as their runners do; return what each has reported."""
    text = (Path(__file__).parents[2] / "docs/ci.md").read_text()
    scripts = re.findall(r"(?:run:|-) \|\n((?: +[^\n]*\n)*?[^\n]*monkey compare (?:[^\n]*\n)+?)```", text)
    assert len(scripts) == 2
    reports = []
    for at, script in enumerate(scripts):
        summary = shop.root.parent / f"summary{at}"
        here = {"RUNNER_TEMP": str(shop.root), "MONKEY_TEMP": str(shop.root), "GITHUB_STEP_SUMMARY": str(summary)}
        lines = dedent(script).replace("compare bench", "compare main")
        lines = re.sub(r"pr-\$\w+\.bench", "pull", lines)
        command = ["bash", "-e", "-c", f'monkey() {{ python -P -m monkey.cli.main "$@"; }}\n{lines}']
        done = subprocess.run(command, cwd=shop.root, env=shop.env | here, capture_output=True, text=True)
        assert done.returncode == 2, done.stdout + done.stderr
        reports.append(summary.read_text() if summary.exists() else done.stdout)
    return reports


def test_a_pull_requests_results_are_compared_with_mains(shop: Shop) -> None:
    (shop.root / "train.py").write_text(JOB)
    shop.spec(SPEC.format(loss=0), name="main")
    shop.spec(SPEC.format(loss=0.05), name="pull")
    shop.run("apply")
    said = shop.run("compare", "main", "pull", code=2).stdout.splitlines()
    assert said[0] == "main@1 → pull@1: acc (more is better)"
    assert said[2].split()[0] == "0.2" and said[2].endswith("✗ worse")
    assert said[3].split()[0] == "0.1" and said[3].endswith("~ no verdict")
    assert said[-1] == "regression: HEAD is worse (1 of 2 configurations)"
    found = shop.json("compare", "main", "pull", code=2)
    worse, still = found["configurations"]
    assert worse["parameters"] == {"lr": 0.2} and worse["high"] < 0 and still["delta"] == 0.0
    # The pairs are the jobs that `results` lists, with the values that it gives.
    rows = {row["job"]: row for sweep in ("main", "pull") for row in shop.json("results", sweep)}
    for pair in worse["pairs"]:
        base, head = rows[pair["base_job"]], rows[pair["head_job"]]
        assert base["parameters"] == head["parameters"] == {"lr": 0.2, **pair["seed"]}
        assert pair["delta"] == head["metrics"]["acc"] - base["metrics"]["acc"]
    kept = shop.run("compare", "main", "pull", "--fail-if", "worse > 0.1").stdout
    assert kept.endswith("no regression is shown: HEAD is not surely worse by more than 0.1\n")
    assert shop.run("compare", "main", "pull", "--markdown", code=2).stdout.startswith("### monkey: ✗ regression\n")

    github, gitlab = run_ci_lines(shop)
    assert github.startswith("### monkey: ✗ regression\n")
    assert "\nmain@1 → pull@1: acc" in gitlab and gitlab.endswith(
        "regression: HEAD is worse by more than 0.002 (1 of 2 configurations)\n"
    )

    shop.spec(SPEC.format(loss=-1), name="pull")  # no loss any more, and a seed that fails
    shop.run("apply", code=1)
    lost = shop.run("compare", "main", "pull", code=1)
    assert "not paired: 2 of HEAD: failed" in lost.stdout
    assert "error: too few to say: 2 of 2 configurations have fewer than 3 pairs" in lost.stderr
    assert "2 jobs of HEAD have no value where BASE's count: 2 failed" in lost.stderr
    shop.run("compare", "main", "pull", "--allow-unknown")
    assert "pull@1" in shop.run("compare", "main", "pull@1", code=2).stdout
    fewer = SPEC.format(loss=0.05).replace("lr: [0.1, 0.2]", "lr: [0.1]")
    shop.spec(fewer, name="fewer")  # without the configuration that is worse
    shop.run("apply", "specs/fewer.yaml")
    gone = shop.run("compare", "main", "fewer", code=1)
    assert "error: too few to say: 3 jobs of BASE have no partner in HEAD" in gone.stderr
    assert "not paired: 3 of BASE: no such job in HEAD" in gone.stdout
    part = shop.run("compare", "main", "fewer", "--where", "lr == 0.1").stdout
    assert part.startswith("main@1 → fewer@1: acc (more is better), where lr == 0.1\n")
    assert "no regression is shown" in part
    assert shop.json("compare", "main", "fewer", "--where", "lr == 0.1")["where"] == "lr == 0.1"
    assert "has no revision 9" in shop.run("compare", "main", "pull@9", code=1).stderr
    assert "expected 'worse > NUMBER'" in shop.run("compare", "main", "pull", "--fail-if", "acc < 1", code=1).stderr
    unknown = shop.run("compare", "main", "pull", "--metric", "ac", code=1).stderr
    assert "no job logged 'ac'" in unknown and "did you mean 'acc'?" in unknown
