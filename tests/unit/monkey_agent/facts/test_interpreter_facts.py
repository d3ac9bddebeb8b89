"""Facts of Pythons: the one that a job runs by, what it computes with, and what was installed for it."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

import pytest

from monkey_agent.facts import interpreter_reader
from monkey_agent.facts.interpreter_facts import find_python, list_installed_packages, read_interpreter_facts
from tests.loops import Run

NUMPY_2 = (
    'CONFIG = {"Build Dependencies": {"blas": {\n "name": "scipy-openblas",\n "found": true,\n "version": "0.3.30"}}}'
)


def write_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def write_numpy(root: Path, config: str, version: str = 'version = "2.4.0"\n') -> None:
    (root / "numpy").mkdir()
    (root / "numpy" / "__init__.py").write_text("raise SystemExit('it was imported')\n")
    (root / "numpy" / "__config__.py").write_text(config)
    (root / "numpy" / "version.py").write_text(version)


def test_a_command_s_own_python_is_meant_and_otherwise_that_of_its_path(tmp_path: Path) -> None:
    own, other = (write_program(tmp_path / name, "") for name in ("python", "python3.99"))
    path = str(tmp_path)
    assert find_python("python3.99 train.py --lr {lr}", path) == str(other)
    assert find_python([str(other), "train.py"], path) == str(other)
    assert find_python(["sh", "-c", "python train.py"], path) == str(own) == find_python("", path)
    assert find_python(".venv/bin/python train.py", path) is None, "it is in the job's directory"
    assert find_python("python3.98 train.py", path) is None


def test_a_python_says_its_version_and_what_its_numpy_computes_with(tmp_path: Path, run: Run) -> None:
    write_numpy(tmp_path, NUMPY_2)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = run(read_interpreter_facts(sys.executable, env, None))
    assert found["python"] == platform.python_version() and platform.python_compiler().strip() in found["python_build"]
    assert found["blas"] == "scipy-openblas 0.3.30 (numpy 2.4.0)"
    assert "lock" not in found, "nothing was built"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("blas_mkl_info={'libraries': ['mkl_rt']}", "mkl (numpy 2.4.0)"),
        ("nothing", "library not known (numpy 2.4.0)"),
    ],
)
def test_older_numpies_are_read_as_far_as_they_tell(tmp_path: Path, run: Run, config: str, said: str) -> None:
    write_numpy(tmp_path, config)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert run(read_interpreter_facts(sys.executable, env, None))["blas"] == said


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho '[1'\n", "#!/bin/sh\necho '[1]'\n", "no program"]
)
def test_a_python_that_answers_nonsense_has_no_facts(tmp_path: Path, run: Run, text: str) -> None:
    broken = write_program(tmp_path / "python", text)
    assert run(read_interpreter_facts(str(broken), dict(os.environ), None)) == {}


def test_the_lock_is_what_was_recorded_at_the_build_or_is_read_where_nothing_was(tmp_path: Path, run: Run) -> None:
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin" / "python", '#!/bin/sh\necho \'["b==2", "a==1", 7]\'\n')
    assert run(list_installed_packages(tmp_path, dict(os.environ))) == ["a==1", "b==2"]
    assert run(read_interpreter_facts(None, dict(os.environ), tmp_path)) == {"lock": ["a==1", "b==2"]}
    (tmp_path / "lock.txt").write_text("a==0\n")
    assert run(read_interpreter_facts(None, dict(os.environ), tmp_path)) == {"lock": ["a==0"]}


def test_a_package_s_origin_is_recorded_without_its_credentials() -> None:
    told = {"url": "https://user:token@host/r.git", "vcs_info": {"commit_id": "abc"}}
    assert interpreter_reader._read_origin(json.dumps(told)) == " @ https://host/r.git#abc"
    for text in (None, "{", "[]", '{"url": ""}'):
        assert interpreter_reader._read_origin(text) == ""
    assert "pytest==" + pytest.__version__ in interpreter_reader.list_packages()
