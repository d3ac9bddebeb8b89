"""`.ci/run` itself: its last words."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.second_try import NAMED

ROOT = Path(__file__).parents[2]
#: Makes an environment whose programs do nothing, but that a test was flaky, and the run failed or not.
PYTHON = f"""\
#!/bin/sh
mkdir -p .venv/bin
printf '#!/bin/sh\\n' | tee .venv/bin/pip > .venv/bin/uv
printf '#!/bin/sh\\n[ "$1" = test ] || echo flaky: a test: how > {NAMED}; exit $CODE\\n' > .venv/bin/invoke
chmod +x .venv/bin/*
"""


@pytest.mark.parametrize("code", [0, 1])
def test_flaky_tests_are_named_last(tmp_path: Path, code: int) -> None:
    """The environment and all programs in it are played: what is tried is the script."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / "bin").mkdir()
    for name, text in {"python3": PYTHON, "mountpoint": "#!/bin/sh\n"}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / NAMED).write_text("flaky: of an earlier run\n")
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "CODE": str(code)}
    done = subprocess.run([str(tmp_path / ".ci/run")], env=env, capture_output=True, text=True)
    assert (done.stdout.splitlines()[-1:], done.returncode) == (["flaky: a test: how"], code), done.stderr
