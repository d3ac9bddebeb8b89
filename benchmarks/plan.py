"""`monkey plan` as whole processes, beside a plain loop of JSON + SHA-256 over the same jobs, a whole process as well.

Bars: at most 6 times the loop, less than 1 GB, linear. The ratio that is reported is the worst of the sizes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _common import MONKEY, Run, report, run, take_turns

#: Jobs, and how often they are planned.
SIZES = {10_000: 7, 100_000: 5, 1_000_000: 3}

SPEC = """\
name: big
command: python train.py --lr {{lr}} --width {{width}} --seed {{seed}}
parameters:
  lr: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
  width: {{range: [0, {widths}]}}
  seed: {{range: [0, 10]}}
"""

LOOP = """\
import hashlib, itertools, json, sys
recipe = {"command": "python train.py --lr {lr} --width {width} --seed {seed}", "code": "c" * 64}
lrs = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
ids = []
for lr, width, seed in itertools.product(lrs, range(int(sys.argv[1])), range(10)):
    job = {**recipe, "parameters": {"lr": lr, "width": width, "seed": seed}}
    text = json.dumps(job, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    ids.append(hashlib.sha256(text.encode()).hexdigest()[:16])
"""


def project(root: Path, jobs: int) -> Path:
    """Write a project with one spec of so many jobs."""
    home = root / str(jobs)
    (home / "specs").mkdir(parents=True)
    (home / "monkey.yaml").write_text("project: bench\n")
    (home / "train.py").write_text("print('train')\n")
    (home / "specs" / "big.yaml").write_text(SPEC.format(widths=jobs // 100))
    return home


def main() -> None:
    """Measure and report."""
    seconds: dict[int, dict[str, float]] = {}
    peaks: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as directory:
        for jobs, rounds in SIZES.items():
            home = project(Path(directory), jobs)
            runs: list[Run] = []

            def ours(home: Path = home, runs: list[Run] = runs) -> float:
                runs.append(run([MONKEY, "plan"], cwd=home))
                return runs[-1].seconds

            def loop(jobs: int = jobs) -> float:
                return run([sys.executable, "-c", LOOP, str(jobs // 100)]).seconds

            seconds[jobs] = take_turns({"ours": ours, "loop": loop}, rounds)
            peaks[jobs] = max(each.peak for each in runs)
            print(f"{jobs:>9,} jobs: {seconds[jobs]['ours']:.2f} s, loop {seconds[jobs]['loop']:.2f} s,", end=" ")
            print(f"{peaks[jobs] / 1e6:.0f} MB", flush=True)
    small, largest = list(SIZES)[-2:]
    report(
        "plan",
        f"seconds for {largest:,} jobs",
        seconds[largest]["ours"],
        {"JSON + SHA-256 loop": seconds[largest]["loop"]},
        max(each["ours"] / each["loop"] for each in seconds.values()),
        ratios={jobs: round(each["ours"] / each["loop"], 3) for jobs, each in seconds.items()},
        seconds={jobs: round(each["ours"], 3) for jobs, each in seconds.items()},
        peak_mb={jobs: round(peak / 1e6) for jobs, peak in peaks.items()},
        growth=round(seconds[largest]["ours"] / seconds[small]["ours"] / (largest / small), 3),
    )


if __name__ == "__main__":
    main()
