"""The house rules that no linter knows."""

from __future__ import annotations

import ast
import csv
import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import monkey

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for root in ("monkey", "agent", "stacks") for path in ROOT.glob(f"{root}/**/*.py"))
TESTS = sorted(ROOT.glob("tests/**/*.py"))

#: Lines of a file, and of a function with its docstring: what one reads in one go.
FILE, FUNCTION = 500, 60
#: Files that may be longer, with the reason. Empty is best.
LONGER: dict[str, str] = {}
#: What a job, an agent and `import monkey` must do without.
HEAVY = {"click", "dvc", "pulumi", "pydantic", "pydantic_core", "rich", "ruamel"}


def modules_after(code: str) -> set[str]:
    """Return the top-level names of all modules that are loaded after running `code` in a fresh interpreter."""
    code += "\nimport json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "module", ["ssh.fleet", "slurm.fleet", "kubernetes.fleet", "aws.fleet", "gcp.fleet", "unlisted_fleets"]
)
def test_a_fleet_is_opened_without_pulumi(module: str) -> None:
    loaded = modules_after(f"import monkey_stacks.{module}")
    assert not loaded & {"pulumi", "pulumi_aws", "pulumi_gcp", "boto3", "google"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def functions(path: Path) -> list[tuple[str, int]]:
    """Return the place and the length in lines of every function."""
    return [
        (f"{relative(path)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    ]


def test_public_names_are_these_and_exist() -> None:
    assert sorted(monkey.__all__) == ["Project", "__version__", "checkpoint_dir", "log", "output_dir", "params"]
    for name in monkey.__all__:
        assert getattr(monkey, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = monkey.nonsense  # type: ignore[attr-defined]  # that it is not there is the point


def test_version_is_one_everywhere() -> None:
    assert importlib.metadata.version("monkey-sweep") == monkey.__version__
    assert f"\n## {monkey.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_import_monkey_and_logging_need_only_python() -> None:
    names = ", ".join(f"monkey.{name}" for name in monkey.__all__ if name != "Project")
    loaded = modules_after(f"import monkey; {names}; monkey.params()")
    third_party = loaded - sys.stdlib_module_names - {"monkey", "__main__"}
    # What a virtual environment's own start-up files load is not ours.
    assert not third_party - modules_after("pass"), third_party


def test_agent_loads_nothing_heavy() -> None:
    found = [
        path for path in ROOT.glob("agent/monkey_agent/**/*.py") if path.name not in ("__init__.py", "__main__.py")
    ]
    modules = [".".join(path.relative_to(ROOT / "agent").with_suffix("").parts) for path in found]
    assert modules
    loaded = modules_after(f"import {', '.join(modules)}")
    assert not loaded & HEAVY, loaded & HEAVY


def test_a_push_that_moves_nothing_loads_no_event_loop() -> None:
    loaded = modules_after("import monkey.cli.commands.push, monkey.apply.push_datasets, monkey.spec.project.project")
    assert not loaded & {"asyncio", "ssl", "socket", *HEAVY - {"click"}}


def test_engine_of_machines_loads_pulumi_only_when_it_runs() -> None:
    loaded = modules_after("import monkey_stacks.engine.pulumi_engine")
    assert not loaded & {"pulumi", "grpc", "http", *HEAVY}, loaded


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_files_and_functions_are_read_in_one_go(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    if relative(path) in LONGER:
        assert lines > FILE, "it is short by now: take it off the list"
    else:
        assert lines <= FILE, f"{lines} lines"
    long = [f"{name}: {length} lines" for name, length in functions(path) if length > FUNCTION]
    assert not long


def test_most_functions_are_one_thought() -> None:
    lengths = sorted(length for path in SOURCES for _, length in functions(path))
    assert lengths[len(lengths) // 2] <= 10
    assert lengths[len(lengths) * 9 // 10] <= 30


def test_files_and_functions_of_tests_are_read_in_one_go() -> None:
    long = {relative(path): lines for path in TESTS if (lines := len(path.read_text().splitlines())) > FILE}
    assert not long, "parted by what they look at, tests are found by the name of their file"
    assert not [f"{name}: {length} lines" for path in TESTS for name, length in functions(path) if length > FUNCTION]


def test_type_errors_are_ignored_for_a_reason() -> None:
    bare = re.compile(r"# type: ignore(?!\[[a-z-, ]+\] +# \S)")
    places = [
        f"{relative(path)}:{number}"
        for path in [*SOURCES, *TESTS]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if bare.search(line) and path != Path(__file__)
    ]
    assert not places


def test_ci_requires_all_that_tests_ask_for() -> None:
    asked = {
        node.args[0].value
        for path in TESTS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("require", "pytest.mark.needs")
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    required = re.findall(r"^(?:libraries|export MONKEY_REQUIRE)=(.*)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert asked <= set(",".join(required).split(","))


def test_digits_are_the_ones_that_their_notice_describes() -> None:
    data = (ROOT / "specs/digits/data/digits.csv").read_bytes()
    notice = (ROOT / "specs/digits/data/README.md").read_text()
    assert hashlib.sha256(data).hexdigest() in notice
    assert "CC BY 4.0" in notice
    rows = [list(map(int, row)) for row in csv.reader(data.decode().splitlines())]
    assert len(rows) == 1797
    assert {len(row) for row in rows} == {65}
    assert {row[-1] for row in rows} == set(range(10))
    assert {pixel for row in rows for pixel in row[:-1]} == set(range(17))
