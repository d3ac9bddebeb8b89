"""What a developer and CI run; `invoke --list` tells."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

from tests import pythons as others
from tests import second_try
from tests.belonging import find_tests, find_tests_since
from tests.contained import contain
from tests.dependency_tasks import audit, licences, lock  # noqa: F401 - invoke finds them here
from tests.mutant_tasks import mutants  # noqa: F401
from tests.product_size import describe_size
from tests.service_tasks import services  # noqa: F401

ROOT = Path(__file__).parent
#: Tools of the environment that runs this task, whether or not it is activated.
BIN = Path(sys.executable).parent
#: Each benchmark ends by itself; one that does not is stuck. Seconds.
BENCHMARK_LIMIT = 900


def tool(c: Context, command: str) -> None:
    """Run a tool of our environment from the root of the repository, and stop where it fails."""
    print(f"$ {command}", flush=True)
    with c.cd(str(ROOT)):
        c.run(f"'{BIN}'/{command}", pty=False, in_stream=False)


@task
def check(c: Context) -> None:
    """Lint, format, types, floors, the documentation with all its links, and what is known against packages."""
    tool(c, "ruff check .")
    tool(c, "ruff format --check .")
    # What only Linux has is found without a Mac. A cache of its own: each system's makes the other's worthless.
    with c.cd(str(ROOT)):
        cache = os.environ.get("MYPY_CACHE_DIR", ".mypy_cache")
        darwin = c.run(f"'{BIN}'/mypy --platform darwin --cache-dir '{cache}/darwin'", asynchronous=True)
    try:
        tool(c, "mypy")
    finally:
        darwin.join()
    tool(c, "lint-imports")
    docs(c)
    audit(c)


@task(
    name="test",
    help={
        "all": "run the rest: what is marked slow, or needs servers, hosts or clouds; failures once more, alone",
        "seeds": "runs of the simulation",
        "only": "a path, or `PATH::TEST`, quick and slow",
        "for": "run what belongs to this file alone; may stand several times",
        "since": "run what belongs to the packages that have changed since this revision, as `origin/main`",
        "keyword": "pytest's -k",
        "workers": "processes; three more than there are cores by default, and two for each core for slow tests",
    },
    iterable=["for_"],
)
def run_tests(
    _: Context,
    for_: list[str],
    since: str = "",
    all: bool = False,
    seeds: int = 0,
    only: str = "",
    keyword: str = "",
    workers: int = 0,
) -> None:
    """Run the quick tests. What a test needs beyond Python is skipped where missing, and named in the summary."""
    words = [f"{BIN}/pytest", "-q", "-rs"]
    # Of the slow ones, those that take most are named: what later work adds is seen.
    if not only and not seeds:
        words += ["-m", "slow", "--durations", "40", "--durations-min", "15"] if all else ["-m", "not slow"]
    words += ["--seeds", str(seeds)] if seeds else []
    words += ["-k", keyword] if keyword else []
    words += _choose_paths(for_, since, only or ("tests/simulation" if seeds else "tests"))
    # A campaign of the simulation takes all cores by itself, and prints its numbers, which xdist would swallow.
    alone = workers == 1 or (seeds and not workers)
    processes = [] if alone else shlex.split(_in_processes(workers, slow=all or bool(only)))
    # Tests that share a cluster run in one process: one for each would start it two or three times.
    processes += ["--dist", "loadgroup"] if all and not alone else []
    print(f"$ {shlex.join([*words, *processes])}", flush=True)
    if all:
        code = second_try.run_twice(words, processes, ROOT)
    else:
        code = subprocess.run(contain([*words, *processes]), cwd=ROOT).returncode
    # What was chosen may have no slow tests.
    nothing = (for_ or since) and code == pytest.ExitCode.NO_TESTS_COLLECTED
    if code and not nothing:
        raise Exit(f"pytest: exit code {code}", code)


def _choose_paths(files: list[str], since: str, otherwise: str) -> list[str]:
    """Return the files with tests of these files, and of what has changed since a revision."""
    if not files and not since:
        return [otherwise]
    chosen = find_tests(files, ROOT) if files else []
    return sorted({*chosen, *(find_tests_since(since, ROOT) if since else [])})


def _in_processes(workers: int = 0, *, slow: bool = False) -> str:
    """Return pytest's options for so many processes.

    More than there are cores by default: with as many, half of the machine's time passes while tests wait for what
    they started. A slow test starts more: hosts, servers. One by one: xdist hands a quarter of all out at once, and the
    slow ones stand in front.
    """
    cores = os.cpu_count() or 1
    return f"-n {workers or (2 * cores if slow else cores + 3)} --maxschedchunk 1"


@task(help={"only": "name of one of them, as `python3.12`"})
def pythons(c: Context, only: str = "") -> None:
    """Run the tests on other Pythons that a Python may fail."""
    if only not in ("", *others.PYTHONS):
        raise Exit(f"expected one of {', '.join(others.PYTHONS)}, found {only}", 2)
    required = os.environ.get("MONKEY_REQUIRE", "").split(",")
    for name in [only] if only else others.PYTHONS:
        interpreter = others.find(name)
        if interpreter is None:
            if name in required:
                raise Exit(f"MONKEY_REQUIRE names {name} ({others.PYTHONS[name]}), which is not here", 1)
            print(f"pythons: no {name} ({others.PYTHONS[name]}) is here; nothing was run on it")
            continue
        print(f"pythons: making an environment of {interpreter}", flush=True)
        programs = others.environment(interpreter, name, ROOT)
        with c.cd(str(ROOT)):
            command = f"'{programs}'/pytest -q -rs {_in_processes()} {others.select_tests(name)}"
            print(f"$ {command}", flush=True)
            c.run(command, pty=False, in_stream=False)


@task
def docs(c: Context) -> None:
    """Build the site into site/; a broken link or anchor fails."""
    # Its advertisement of a new major version is no warning of ours.
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    tool(c, "mkdocs build --strict --quiet")


@task(help={"pictures": "also draw docs/dashboards-*.svg anew, of a sweep that is run for it; `services` first"})
def dashboards(c: Context, pictures: bool = False) -> None:
    """Write the dashboards (dashboards/*.json) anew."""
    tool(c, "python dashboards/generate.py")
    if pictures:
        tool(c, "python docs/pictures.py")


@task
def stack(c: Context) -> None:
    """Start InfluxDB, Telegraf and Grafana with our dashboards in containers; passwords go into dashboards/.env."""
    from dashboards.stack import StackError, start

    try:
        print(start())
    except StackError as exc:
        raise Exit(f"stack: {exc}", 1) from exc


@task(help={"only": "name of one benchmark, as `dispatch`"})
def bench(c: Context, only: str = "") -> None:
    """Run the benchmarks one after another; the last line of each is its result in JSON."""
    chosen = sorted(
        p for p in (ROOT / "benchmarks").glob("*.py") if not p.name.startswith("_") and only in ("", p.stem)
    )
    if not chosen:
        raise Exit(f"there is no benchmarks/{only or '*'}.py", 2)
    results = []
    for path in chosen:
        print(f"$ python benchmarks/{path.name}", flush=True)
        done = c.run(f"'{sys.executable}' '{path}'", in_stream=False, timeout=BENCHMARK_LIMIT)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    print("\nratio to the best peer or bound, in JSON:")
    for result in results:
        print(json.dumps({name: result.get(name) for name in ("benchmark", "unit", "ours", "peers", "ratio")}))


@task
def build(c: Context) -> None:
    """Build wheel and sdist into dist/, and look into the wheel: our three packages, their data, nothing else."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    tool(c, "python -m build --no-isolation --outdir dist .")
    [wheel] = (ROOT / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    found = {name.split("/")[0] for name in names}
    expected = {"monkey", "monkey_agent", "monkey_stacks", wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}
    if found != expected or "monkey/py.typed" not in names or "tests" in "/".join(names).split("/"):
        raise Exit(
            f"{wheel.name} holds {sorted(found)}, expected {sorted(expected)}, with py.typed and without tests", 1
        )
    _starts(c, wheel)
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size // 1024} KiB")
    print(describe_size(ROOT))


def _starts(c: Context, wheel: Path) -> None:
    """Install the wheel alone and start both commands: a dependency that only development has would show here."""
    with tempfile.TemporaryDirectory() as scratch:
        c.run(f"'{sys.executable}' -m venv '{scratch}/venv'", in_stream=False)
        c.run(f"'{scratch}/venv/bin/pip' install -q '{wheel}'", in_stream=False)
        for command in ("monkey --version", "monkey plan --help", "monkey-agent --help"):
            c.run(f"'{scratch}/venv/bin/'{command} >/dev/null", in_stream=False)
