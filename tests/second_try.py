"""Tests that failed are run once more, alone, when all others have ended.

A machine that is busy with other tests breaks some that are right. One that passes the second time is flaky: it is
named, with how it failed, and refuses no change. One that hangs is ended, says where it stood, and has failed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.contained import contain

#: Tests that are tried again at most: more are no accident of a busy machine.
MOST = 10
#: Seconds after which a test hangs: twice what the longest takes on a busy machine.
PATIENCE = 900.0
#: Where flaky tests are named, below the root of the repository; `.ci/run` prints it last.
NAMED = ".flaky"


def run_twice(command: Sequence[str], crowd: Sequence[str], root: Path, patience: float = PATIENCE) -> int:
    """Run pytest, and what failed there once more, and return the exit code; flaky tests are in `NAMED` then.

    `command`: pytest with its options; `crowd`: those that run tests beside each other; `root`: where to run it;
    `patience`: seconds that a test may take.
    """
    (root / NAMED).unlink(missing_ok=True)
    # The process of a test that hangs ends, and what the test waits for may never end: so each try has processes.
    command = [*command, "-o", f"faulthandler_timeout={patience}", "-o", "faulthandler_exit_on_timeout=true"]
    # A failure of an earlier call would be tried again, too.
    code, failed = _run([*command, *crowd, "--cache-clear"], root)
    if code != pytest.ExitCode.TESTS_FAILED or len(failed) > MOST:
        return code
    print(f"{len(failed)} failed: once more, alone", flush=True)
    code, still = _run([*command, "-n", "1", "--last-failed", "--last-failed-no-failures", "none"], root)
    lines = [f"flaky: {name}: {how}\n" for name, how in failed.items() if name not in still]
    (root / NAMED).write_text("".join(lines))
    return code


def _run(command: Sequence[str], root: Path) -> tuple[int, dict[str, str]]:
    """Run pytest; return its exit code, and test to how it failed."""
    report = root / ".pytest_cache/report.xml"
    command = contain([*command, "-o", "junit_family=xunit1", f"--junitxml={report}"])
    done = subprocess.run(command, cwd=root)
    failed = {}
    for case in ElementTree.parse(report).iter("testcase"):
        for wrong in case:
            if wrong.tag in ("failure", "error"):
                how = (wrong.get("message") or "").partition("\n")[0]
                failed[f"{case.get('file')}::{case.get('name')}"] = how
    return done.returncode, failed
