"""What installs monkey anew: told by a real interpreter that finds a distribution of the test's own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ASK = "import sys; from monkey import origin; print(*map(origin.hint_install, sys.argv[1:]), sep='\\n')"
PIP = f"run: {sys.executable} -m pip install"


def hints(at: Path, *extras: str, record: dict[str, Any] | None) -> list[str]:
    """Return what the extras' hints are where monkey was installed with this record (PEP 610; None: without one)."""
    about = at / "monkey_sweep-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: monkey-sweep\nVersion: 0.1.0\n")
    if record is not None:
        (about / "direct_url.json").write_text(json.dumps(record))
    return asked([sys.executable, "-c", ASK, *extras], f"{at}{os.pathsep}{ROOT}")


def asked(command: list[str], path: str) -> list[str]:
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_installs_it_on_a_runner_names_a_commit(tmp_path: Path) -> None:
    git = {"vcs": "git", "commit_id": "c" * 40, "requested_revision": "main"}
    record = {"url": "https://forge.example/o/monkey", "vcs_info": git}
    hints(tmp_path, record=record)
    ask = "from monkey import origin; print(origin.name_requirement(['aws', 'ssh'])); print(origin.locate_clone())"
    path = f"{tmp_path}{os.pathsep}{ROOT}"
    pinned = f"monkey-sweep[aws,ssh] @ git+https://forge.example/o/monkey@{'c' * 40}"
    assert asked([sys.executable, "-c", ask], path) == [pinned, "None"]
    record = {"url": "file:///home/me/my%20clone", "dir_info": {"editable": True}}
    (tmp_path / "monkey_sweep-0.1.0.dist-info/direct_url.json").write_text(json.dumps(record))
    assert asked([sys.executable, "-c", ask], path) == ["", "/home/me/my clone"]


def test_from_a_clone(tmp_path: Path) -> None:
    record = {"url": "file:///home/me/my%20clone", "dir_info": {"editable": True}}
    plain, more = hints(tmp_path, "", "ssh", record=record)
    assert (plain, more) == (f"{PIP} -e '/home/me/my clone'", f"{PIP} -e '/home/me/my clone[ssh]'")
    assert shlex.split(more)[-1] == "/home/me/my clone[ssh]"


@pytest.mark.parametrize(
    ("record", "source"),
    [
        ({"url": "file:///home/me/clone", "dir_info": {}}, "'/home/me/clone[aws]'"),
        (
            {"url": "file:///w/m.whl", "archive_info": {"hash": "sha256=0"}},
            "--force-reinstall 'monkey-sweep[aws] @ file:///w/m.whl'",
        ),
        (
            {"url": "https://h/m.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40, "requested_revision": "main"}},
            "--force-reinstall 'monkey-sweep[aws] @ git+https://h/m.git@main'",
        ),
        (
            {"url": "https://h/m.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
            "--force-reinstall 'monkey-sweep[aws] @ git+https://h/m.git'",
        ),
    ],
)
def test_from_elsewhere(tmp_path: Path, record: dict[str, Any], source: str) -> None:
    assert hints(tmp_path, "aws", record=record) == [f"{PIP} {source}"]


def test_where_nobody_wrote_down_where_it_is_from(tmp_path: Path) -> None:
    asks = f"run, with the directory of monkey's clone for CLONE: {sys.executable} -m pip install"
    assert hints(tmp_path, "", "gcp", record=None) == [f"{asks} CLONE", f"{asks} 'CLONE[gcp]'"]


def test_without_a_distribution_and_without_pip(tmp_path: Path) -> None:
    """As an agent's bundle is started, in an environment that uv made."""
    [said] = asked([sys.executable, "-S", "-c", ASK, ""], str(ROOT))
    assert (
        said == f"run, with the directory of monkey's clone for CLONE: uv pip install --python {sys.executable} CLONE"
    )
