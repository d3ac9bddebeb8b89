"""The task about mutants. `tasks.py` has it for invoke."""

from __future__ import annotations

from pathlib import Path

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

from tests.mutants.trials import TESTS, choose_mutants, try_mutants

ROOT = Path(__file__).parents[1]


@task(
    positional=["paths"],
    help={
        "paths": "modules or directories of the product, separated by commas",
        "count": "how many mutants; all of the modules' where they have fewer",
        "seed": "chooses them: the same seed, the same mutants of the same code",
        "tests": "files or directories of tests, separated by commas; by default those that run the product in pytest",
    },
)
def mutants(_: Context, paths: str, count: int = 200, seed: int = 0, tests: str = ",".join(TESTS)) -> None:
    """Break the product in small ways, in a copy, and name each break that no quick test notices."""
    try:
        chosen = choose_mutants(ROOT, paths.split(","), count, seed)
        print(f"{len(chosen)} mutants; first, tests run without one, to see which lines they run", flush=True)
        outcome = try_mutants(ROOT, chosen, tests.split(","), lambda said: print(said, flush=True))
    except (RuntimeError, ValueError) as exc:
        raise Exit(f"mutants: {exc}", 1) from exc
    print(outcome)
