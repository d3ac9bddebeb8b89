"""`monkey compare`: do its intervals hold the truth, does it cry wolf, and what does pairing by seed change?

Bars: 95 % intervals of normal values hold the truth in 93 to 97 of 100 draws, at every n from 3 on. Without any
difference, at most 5 of 100 comparisons say "regression". Differences and p values are SciPy's, to nine digits. The
ratio is the rate of false regressions over what the same intervals give without Holm's correction.

The last part runs 40 real trainings by the real CLI: pairing narrows the interval where the random stream stays the
same, and widens it where it does not.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from math import cos, pi, sqrt, tan
from pathlib import Path
from statistics import fmean, mean, variance
from typing import Any

from _common import MONKEY, ensure, report

from monkey.results.comparison.compared_metric import ComparedMetric
from monkey.results.comparison.job_pairs import ComparedSide, JobPair, PairedConfiguration, PairedJobs
from monkey.results.comparison.paired_test import compute_paired_test
from monkey.results.comparison.sweep_comparison import (
    ComparisonMark,
    ComparisonVerdict,
    SweepComparison,
    compare_sides,
)
from monkey.results.groups import summarize_values
from monkey.results.result_rows import gather_results
from monkey.spec.job.job_table import JobTable
from monkey.spec.job.recipe import SweepSettings

ROOT = Path(__file__).parents[1]
#: Draws of each cell of the table, and resamples of each bootstrap.
DRAWS, RESAMPLES = 4_000, 300
SIZES = (3, 5, 10, 20)
#: Simulated comparisons, of so many configurations and seeds.
COMPARISONS, CONFIGURATIONS, SEEDS = 2_000, 12, 5
#: Comparisons without a difference, of so many configurations and seeds.
SHAPES = ((1, 3), (2, 3), (12, 3), (60, 3), (100, 3), (12, 5), (12, 10))
#: Comparisons in which HEAD is worse, of so many configurations and seeds, and by so many deviations of one run.
POWER_SHAPES, LOSSES = ((1, 3), (4, 5), (12, 3), (12, 5)), (1.0, 2.0)
SCIPY = """
import json, sys
from scipy import stats
rows = []
for base, head in json.load(sys.stdin):
    found = stats.ttest_rel(head, base)
    low, high = found.confidence_interval(0.95)
    less = stats.ttest_rel(head, base, alternative="less").pvalue
    rows.append([low, high, less])
json.dump(rows, sys.stdout)
"""
METRIC = ComparedMetric("test_accuracy", maximize=True, take="last")
#: What each HEAD of the real trainings changes, and the parameter that is ignored for it.
BASE = {"lr": 0.05, "hidden": 32, "momentum": 0.9, "wd": 1e-6}
HEADS = {"wd": 1e-4, "momentum": 0.85, "lr": 0.055, "hidden": 64}


def measure_coverage(draws: random.Random) -> dict[str, dict[int, tuple[float, float]]]:
    """Return how many of 100 intervals hold the mean, by distribution and n: Student's t, and a bootstrap's."""
    kinds: dict[str, Callable[[], float]] = {
        "normal": lambda: draws.gauss(0, 1),
        "skewed (exponential)": lambda: draws.expovariate(1) - 1,
        "heavy tails (t, 3 degrees)": lambda: (
            draws.gauss(0, 1) / sqrt(sum(draws.gauss(0, 1) ** 2 for _ in range(3)) / 3)
        ),
    }
    table: dict[str, dict[int, tuple[float, float]]] = {}
    for kind, draw in kinds.items():
        for n in SIZES:
            ours = boot = 0
            for _ in range(DRAWS):
                values = [draw() for _ in range(n)]
                spread = summarize_values(values)
                assert spread.ci95 is not None
                ours += abs(spread.mean) <= spread.ci95
                means = sorted(fmean(draws.choices(values, k=n)) for _ in range(RESAMPLES))
                boot += means[int(0.025 * RESAMPLES)] <= 0 <= means[int(0.975 * RESAMPLES)]
            table.setdefault(kind, {})[n] = 100 * ours / DRAWS, 100 * boot / DRAWS
            print(f"  {kind}, n = {n}: t {100 * ours / DRAWS:.1f} %, bootstrap {100 * boot / DRAWS:.1f} %", flush=True)
    return table


def draw_comparison(
    draw_pair: Callable[[], tuple[float, float]], configurations: int = CONFIGURATIONS, seeds: int = SEEDS
) -> SweepComparison:
    """Return a comparison whose pairs (BASE, HEAD) are drawn."""
    settings = SweepSettings(metric=METRIC.name, maximize=True)
    base, head = (ComparedSide(role, role, gather_results(JobTable(), settings, {}), {}) for role in ("BASE", "HEAD"))
    made = []
    for at in range(configurations):
        pairs = []
        for seed in range(seeds):
            x, y = draw_pair()
            pairs.append(JobPair({"seed": seed}, f"b{at}.{seed}", f"h{at}.{seed}", x, y, same=False))
        made.append(PairedConfiguration({"at": at}, pairs))
    return compare_sides(base, head, PairedJobs(made, []), METRIC, limit=0.0)


def measure_alarms(draws: random.Random, shift: float) -> dict[str, float]:
    """Return of how many of 100 comparisons something is said to be worse: by what.

    Half of the noise is the seed's, and HEAD is worse by so many deviations.
    """

    def draw_pair() -> tuple[float, float]:
        shared = draws.gauss(0, 1)
        x, y = (sqrt(0.5) * (shared + draws.gauss(0, 1)) for _ in range(2))
        return x, y - shift

    found = dict.fromkeys(("regression", "a configuration", "the mean over all", "an interval, uncorrected"), 0)
    for _ in range(COMPARISONS):
        compared = draw_comparison(draw_pair)
        overall = compared.overall
        found["regression"] += compared.verdict is ComparisonVerdict.REGRESSION
        found["a configuration"] += ComparisonMark.WORSE in compared.counts
        found["the mean over all"] += overall is not None and overall.mark is ComparisonMark.WORSE
        tests = [each.test for each in compared.configurations if each.test]
        found["an interval, uncorrected"] += any(test.worse <= 0.025 for test in tests)
    return {name: 100 * count / COMPARISONS for name, count in found.items()}


def measure_false_alarms(draws: random.Random) -> float:
    """Print how many of 100 comparisons without a difference say "regression", by what is logged; return the most."""

    def count_right(images: int, accuracy: float) -> float:
        return sum(draws.random() < accuracy for _ in range(images)) / images

    def draw_nearly_right() -> float:
        return round(min(1.0, draws.gauss(0.95, sqrt(0.95 * 0.05 / 10_000))), 4)

    kinds: dict[str, Callable[[], float]] = {
        "normal": lambda: draws.gauss(0, 1),
        "skewed (exponential)": lambda: draws.expovariate(1),
        "accuracy over 20, 0.9": lambda: count_right(20, 0.9),
        "accuracy over 50, 0.98": lambda: count_right(50, 0.98),
        "accuracy over 100, 0.98": lambda: count_right(100, 0.98),
        "accuracy over 10,000, 0.95": draw_nearly_right,
        "three decimals": lambda: round(draws.gauss(0.95, 0.01), 3),
        "two decimals": lambda: round(draws.gauss(0.95, 0.01), 2),
        "one decimal": lambda: round(draws.gauss(0.95, 0.03), 1),
        "half of them equal": lambda: 0.9 if draws.random() < 0.5 else round(draws.gauss(0.9, 0.02), 2),
    }
    most = 0.0
    for kind, draw in kinds.items():
        rates = {}
        for configurations, seeds in SHAPES:
            rates[f"{configurations} × {seeds}"] = _measure_rate(draw, configurations, seeds)
        shown = ", ".join(f"{shape}: {rate:.1f}" for shape, rate in rates.items())
        print(f"  false regressions of 100, {kind}: {shown}", flush=True)
        most = max(most, *rates.values())
    return most


def _measure_rate(draw: Callable[[], float], configurations: int, seeds: int) -> float:
    """Return how many of 100 comparisons say "regression", where both sides are drawn alike."""
    false = 0
    for _ in range(COMPARISONS):
        compared = draw_comparison(lambda: (draw(), draw()), configurations, seeds)
        false += compared.verdict is ComparisonVerdict.REGRESSION
    return 100 * false / COMPARISONS


def measure_power(seed: int = 0) -> None:
    """Print how many of 100 comparisons of normal values say "regression" where there is one.

    HEAD is worse in all configurations, or in the first one alone. Nothing is shared by the seeds of both sides. The
    draws depend on the seed alone, so that two versions of the test see the same values.
    """
    for everywhere in (True, False):
        for loss in LOSSES:
            shown = []
            for configurations, seeds in POWER_SHAPES:
                said = _count_found(random.Random(seed), configurations, seeds, loss, everywhere=everywhere)
                shown.append(f"{configurations} × {seeds}: {100 * said / COMPARISONS:.1f}")
            where = "all configurations" if everywhere else "one configuration"
            print(f"  regressions of 100 that are found, {where} worse by {loss:g}: {', '.join(shown)}", flush=True)


def _count_found(draws: random.Random, configurations: int, seeds: int, loss: float, *, everywhere: bool) -> int:
    found = 0
    for _ in range(COMPARISONS):
        at = 0

        def draw_pair() -> tuple[float, float]:
            nonlocal at
            worse = everywhere or at < seeds
            at += 1
            return draws.gauss(0, 1), draws.gauss(0, 1) - (loss if worse else 0.0)

        compared = draw_comparison(draw_pair, configurations, seeds)
        found += compared.verdict is ComparisonVerdict.REGRESSION
    return found


def compare_with_scipy(draws: random.Random) -> float | None:
    """Return the largest relative difference of intervals and p values from SciPy's; None where it is missing."""
    python = ensure("scipy", "scipy==1.17.1")
    if python is None:
        return None
    sets = [[[draws.gauss(0, 1) for _ in range(n)] for _ in range(2)] for n in range(3, 203)]
    done = subprocess.run([python, "-c", SCIPY], input=json.dumps(sets), capture_output=True, text=True, check=True)
    worst = 0.0
    for (base, head), theirs in zip(sets, json.loads(done.stdout), strict=True):
        test = compute_paired_test([y - x for x, y in zip(base, head, strict=True)], 0.0, maximize=True)
        assert test is not None and test.spread.ci95 is not None
        ours = test.spread.mean - test.spread.ci95, test.spread.mean + test.spread.ci95, test.worse
        worst = max(worst, *(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True)))
    return worst


def find_welch_width(base: Sequence[float], head: Sequence[float]) -> float:
    """Return the width of the 95 % interval of two independent samples (Welch): what unpaired jobs would have."""
    of_base, of_head = variance(base) / len(base), variance(head) / len(head)
    freedom = (of_base + of_head) ** 2 / (of_base**2 / (len(base) - 1) + of_head**2 / (len(head) - 1))
    low, high = 0.0, pi / 2  # as an angle: the density of t over it is a power of the cosine
    whole = _integrate(freedom, pi / 2)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _integrate(freedom, middle) < 0.95 * whole else (low, middle)
    return 2 * tan(high) * sqrt(freedom) * sqrt(of_base + of_head)


def _integrate(freedom: float, to: float, steps: int = 400) -> float:
    """Return the integral of cos ** (freedom - 1) from 0, by Simpson's rule."""
    angle = [to * at / steps for at in range(steps + 1)]
    values = [max(0.0, cos(x)) ** (freedom - 1) for x in angle]
    return to / steps / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))


def run_trainings(directory: Path) -> dict[str, dict[str, Any]]:
    """Apply BASE and its HEADS, eight seeds each, and return what `monkey compare` says of each HEAD, by its name."""
    root = directory / "project"
    (root / "specs").mkdir(parents=True)
    (root / "monkey.yaml").write_text("project: compare\n")
    (root / "train.py").write_text((ROOT / "benchmarks/_digits_mlp.py").read_text())
    data = ROOT / "specs/digits/data/digits.csv"
    for name, changed in {"base": {}, **{name: {name: value} for name, value in HEADS.items()}}.items():
        lines = [
            f"name: {name}",
            f"command: [{json.dumps(sys.executable)}, train.py, {json.dumps(str(data))}]",
            f"parameters: {json.dumps({**BASE, **changed, 'seed': {'range': [0, 8]}})}",
            "metric: {name: test_accuracy, goal: maximize}",
            'env: {OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1"}',
            "code: {root: ., include: [train.py]}",
            "outputs: []",
        ]
        (root / "specs" / f"{name}.yaml").write_text("\n".join(lines) + "\n")
    home = {"HOME": str(directory), "XDG_STATE_HOME": str(directory / "state"), "XDG_CACHE_HOME": str(directory / "c")}

    def run(*words: str) -> str:
        done = subprocess.run([MONKEY, *words], cwd=root, env={**os.environ, **home}, capture_output=True, text=True)
        if done.returncode not in ((0, 2) if words[0] == "compare" else (0,)):
            raise SystemExit(f"monkey {' '.join(words)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
        return done.stdout

    run("apply", "--yes")
    print(run("compare", "base", "wd", "--ignore", "wd"))
    return {name: json.loads(run("compare", "base", name, "--ignore", name, "--json")) for name in HEADS}


def describe_pairing(name: str, compared: Mapping[str, Any]) -> tuple[str, float]:
    """Return a line on what pairing changed, and the ratio of the widths: paired over unpaired."""
    (one,) = compared["configurations"]
    base, head = ([pair[side] for pair in one["pairs"]] for side in ("base", "head"))
    paired, welch = one["high"] - one["low"], find_welch_width(base, head)
    change = f"{name} {BASE[name]:g} → {HEADS[name]:g}"
    assert abs(mean(head) - mean(base) - one["delta"]) < 1e-12
    widths = f"[{one['low']:+.4f}, {one['high']:+.4f}], width {paired:.4f}; unpaired (Welch) {welch:.4f}"
    return f"{change}: Δ {one['delta']:+.4f} {widths}; r {one['correlation']:+.2f}; {one['mark']}", paired / welch


def main() -> None:
    """Measure and report."""
    draws = random.Random(0)
    worst = compare_with_scipy(draws)
    print(f"  largest relative difference from SciPy: {'not measured' if worst is None else f'{worst:.1e}'}")
    coverage = measure_coverage(draws)
    none, some = measure_alarms(draws, 0.0), measure_alarms(draws, 0.5)
    print(f"  said to be worse, of 100 comparisons without a difference: {none}")
    print(f"  … with HEAD worse by half a deviation everywhere: {some}")
    measure_power()
    most = measure_false_alarms(draws)
    ratios = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, compared in run_trainings(Path(directory)).items():
            line, ratios[name] = describe_pairing(name, compared)
            print(f"  {line}")
    normal = [ours for ours, _ in coverage["normal"].values()]
    peers = {
        "without correction": none["an interval, uncorrected"],
        "lowest coverage": min(normal),
        "most by any metric": most,
    }
    peers |= {f"width by pairing, {name}": ratio for name, ratio in ratios.items()}
    ours = none["regression"]
    report("compare", "false regressions of 100", ours, peers, ours / none["an interval, uncorrected"])


if __name__ == "__main__":
    main()
