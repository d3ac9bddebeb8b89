"""The client that jobs import: complete, alone, and repaired when half of it is gone."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monkey_agent.environments.job_import_path import _CLIENT_FILES, install_client

JOB = """
import fractions, json, monkey, sys
monkey.log("loss", 0.5, step=3)
monkey.log({"a": 1, "b": 2.5}, step=4)
monkey.log("c", fractions.Fraction(1, 4))
print(json.dumps({
    "file": monkey.__file__,
    "params": monkey.params(lr=1),
    "outputs": str(monkey.output_dir()),
    "checkpoints": str(monkey.checkpoint_dir()),
    "loaded": sorted(name for name in sys.modules if name.split(".")[0] == "monkey"),
}))
"""


def find_python(version: str) -> str:
    """Return an interpreter of a version; skip the test where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [*pyenv.glob(f"versions/{version}.*/bin/python"), shutil.which(f"python{version}")]
    for python in found:
        # pyenv has programs on the PATH that fail.
        if python and subprocess.run([python, "-S", "-c", ""], capture_output=True).returncode == 0:
            return str(python)
    pytest.skip(f"no Python {version} is here")


def run_python(client: Path, work: Path, python: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run code with nothing but the standard library and the client."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(client),
        "MONKEY_METRICS_DIR": str(work / "metrics"),
        "MONKEY_OUTPUT_DIR": str(work / "outputs"),
        "MONKEY_CHECKPOINT_DIR": str(work / "checkpoints"),
        "MONKEY_PARAMS": '{"lr": 3}',
    }
    return subprocess.run([python, "-S", "-c", code], env=env, cwd=work, capture_output=True, text=True)


def run_job(client: Path, work: Path, python: str = sys.executable) -> dict[str, object]:
    """Run JOB."""
    done = run_python(client, work, python, JOB)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_job_without_any_package_imports_monkey_from_the_client(tmp_path: Path) -> None:
    client = install_client(tmp_path / "cache")
    answer = run_job(client, tmp_path)
    assert answer["file"] == str(client / "monkey" / "__init__.py")
    assert answer["params"] == {"lr": 3}
    [metrics] = (tmp_path / "metrics").iterdir()
    assert json.loads(metrics.read_text().splitlines()[0])["m"] == {"loss": 0.5}


@pytest.mark.parametrize("name", _CLIENT_FILES)
def test_client_is_written_in_the_words_of_an_old_python(tmp_path: Path, name: str) -> None:
    text = (install_client(tmp_path) / "monkey" / name).read_text()
    oldest = (3, 6) if name == "__init__.py" else (3, 7)
    tree = ast.parse(text, feature_version=oldest)
    future = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    assert not future or oldest > (3, 6), "the future came with 3.7"


@pytest.mark.parametrize("version", ["3.7", "3.8", "3.9", "3.10"])
def test_metrics_of_an_old_python_are_recorded(tmp_path: Path, version: str) -> None:
    answer = run_job(install_client(tmp_path / "cache"), tmp_path, find_python(version))
    assert answer["params"] == {"lr": 3}
    [metrics] = (tmp_path / "metrics").iterdir()
    one, many, slow = map(json.loads, metrics.read_text().splitlines())
    assert (one["m"], one["step"]) == ({"loss": 0.5}, 3)
    assert (many["m"], many["step"]) == ({"a": 1, "b": 2.5}, 4)
    assert slow["m"] == {"c": 0.25}


def test_a_python_that_is_too_old_records_nothing_and_says_so_once(tmp_path: Path) -> None:
    code = "import monkey\nmonkey.log('loss', 0.5, step=1)\nmonkey.log({'a': 1})\nprint('trained')"
    done = run_python(install_client(tmp_path / "cache"), tmp_path, find_python("3.6"), code)
    said = "monkey.log: no metric is recorded: expected Python 3.7 or newer, found 3.6\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", said)


def test_client_holds_no_more_than_it_says(tmp_path: Path) -> None:
    client = install_client(tmp_path)
    assert {str(p.relative_to(client / "monkey")) for p in client.rglob("*") if p.is_file()} == set(_CLIENT_FILES)
    assert [p.name for p in client.parent.iterdir()] == [client.name], "something was left beside the client"


def test_second_call_writes_nothing(tmp_path: Path) -> None:
    first = install_client(tmp_path)
    before = [(first / "monkey" / name).stat().st_ino for name in _CLIENT_FILES]
    assert install_client(tmp_path) == first
    assert [(first / "monkey" / name).stat().st_ino for name in _CLIENT_FILES] == before


@pytest.mark.parametrize("damage", ["removed", "emptied"])
def test_damaged_client_is_replaced(tmp_path: Path, damage: str) -> None:
    client = install_client(tmp_path)
    victim = client / "monkey" / "metrics" / "metric_log.py"
    victim.unlink() if damage == "removed" else victim.write_bytes(b"")
    assert install_client(tmp_path) == client
    run_job(client, tmp_path)


def test_many_agents_at_once_get_one_whole_client(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        clients = set(pool.map(lambda _: install_client(tmp_path), range(64)))
    [client] = clients
    run_job(client, tmp_path)
    assert not list(client.rglob(".*")), "a temporary file was left behind"


def test_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the cache should be")
    with pytest.raises(OSError):
        install_client(tmp_path / "cache")
