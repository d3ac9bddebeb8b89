"""The client that jobs import: complete, alone, and repaired when half of it is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monkey_agent.environments.job_import_path import _CLIENT_FILES, install_client

JOB = """
import json, monkey, sys
monkey.log("loss", 0.5, step=3)
print(json.dumps({
    "file": monkey.__file__,
    "params": monkey.params(lr=1),
    "outputs": str(monkey.output_dir()),
    "checkpoints": str(monkey.checkpoint_dir()),
    "loaded": sorted(name for name in sys.modules if name.split(".")[0] == "monkey"),
}))
"""


def run_job(client: Path, work: Path) -> dict[str, object]:
    """Run JOB with nothing but the standard library and the client."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(client),
        "MONKEY_METRICS_DIR": str(work / "metrics"),
        "MONKEY_OUTPUT_DIR": str(work / "outputs"),
        "MONKEY_CHECKPOINT_DIR": str(work / "checkpoints"),
        "MONKEY_PARAMS": '{"lr": 3}',
    }
    done = subprocess.run([sys.executable, "-S", "-c", JOB], env=env, cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_job_without_any_package_imports_monkey_from_the_client(tmp_path: Path) -> None:
    client = install_client(tmp_path / "cache")
    answer = run_job(client, tmp_path)
    assert answer["file"] == str(client / "monkey" / "__init__.py")
    assert answer["params"] == {"lr": 3}
    [metrics] = (tmp_path / "metrics").iterdir()
    assert json.loads(metrics.read_text())["m"] == {"loss": 0.5}


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
