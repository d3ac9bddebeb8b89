"""How soon the command line answers: the help, the plan of a small spec, the status of a large project.

Bars: `monkey --help` at most 6 times a bare `python -c pass`, `monkey plan` of a small spec at most 25 times;
`monkey status` of 100,000 jobs by 50 agents at most half a second. The ratio that is reported is the help's; the
others stand beside it. Of the status there is a second number, without a bar of its own: where every job logged a
metric, which its agents tell with its end.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from _common import MONKEY, report, run, take_turns
from _fleet import AGENTS, Agents

from monkey.signing.keys.user_key import KEY_VARIABLE
from tests.signing import make_key, write_key

ROUNDS = 15
JOBS = 100_000

SMALL = """\
name: small
command: python train.py --lr {lr} --seed {seed}
parameters:
  lr: [0.1, 0.2, 0.3]
  seed: [1, 2]
"""

BIG = f"""\
name: big
command: python train.py --lr {{lr}} --width {{width}} --seed {{seed}}
parameters:
  lr: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
  width: {{range: [0, {JOBS // 100}]}}
  seed: {{range: [0, 10]}}
"""


def project(root: Path, name: str, spec: str) -> Path:
    """Write a project with one spec."""
    home = root / name
    (home / "specs").mkdir(parents=True)
    (home / "monkey.yaml").write_text("project: bench\n")
    (home / "train.py").write_text("print('train')\n")
    (home / "specs" / "spec.yaml").write_text(spec)
    return home


def status(root: Path, name: str, *, metrics: bool) -> Callable[[], float]:
    """Make a large project, and return what times its status."""
    home = project(root, name, BIG)
    agents = Agents(home, home / "specs" / "spec.yaml", metrics=metrics)
    asyncio.run(agents.work())

    def measure() -> float:
        asyncio.run(agents.beat())
        return run([MONKEY, "status"], cwd=home).seconds

    return measure


def main() -> None:
    """Measure and report."""
    # Bytecode is compiled, as after any installation; the first round does it, and its median is not the first's.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        # Whoever looks has applied the sweep: that of a stranger would be read twice.
        os.environ[KEY_VARIABLE] = str(write_key(root / "key", make_key()))
        small = project(root, "small", SMALL)
        contestants = {
            "python -c pass": lambda: run([sys.executable, "-c", "pass"]).seconds,
            "monkey --help": lambda: run([MONKEY, "--help"]).seconds,
            "monkey plan": lambda: run([MONKEY, "plan"], cwd=small).seconds,
            "monkey status": status(root, "large", metrics=False),
            "monkey status, with metrics": status(root, "measured", metrics=True),
        }
        for contestant in contestants.values():
            contestant()
        found = take_turns(contestants, ROUNDS)
    bare = found["python -c pass"]
    for name, seconds in found.items():
        print(f"{name:>27}: {seconds * 1e3:7.1f} ms, {seconds / bare:5.1f} times a bare Python")
    report(
        "start",
        "seconds of monkey --help, median",
        found["monkey --help"],
        {"python -c pass": bare},
        found["monkey --help"] / bare,
        plan_ratio=round(found["monkey plan"] / bare, 2),
        status_seconds=round(found["monkey status"], 3),
        status_with_metrics_seconds=round(found["monkey status, with metrics"], 3),
        status_of={"jobs": JOBS, "agents": AGENTS},
        load=[round(load, 2) for load in os.getloadavg()],
    )


if __name__ == "__main__":
    main()
