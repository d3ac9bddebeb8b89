"""A training that fails in a command of several parts has failed, whatever shell its machine has."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop

FAIL = "import monkey\nmonkey.log('loss', 0.01, step=1)\nraise RuntimeError('device-side assert')\n"
GOOD = "import monkey\nfor i in range(3):\n    monkey.log('loss', 1 / (i + 2), step=i)\n"
METRIC = "metric: {name: loss, goal: minimize}\noutputs: []\nparameters: {f: [fail, good]}\n"
COMMANDS = {
    "pipe": "python {f}.py | tee train.log",
    "lines": "|\n  python {f}.py\n  python ok.py",
    "semicolon": "'python {f}.py; python ok.py'",
    "success": "'python {f}.py; true'",
    "subshell": "'(python {f}.py; python ok.py); python ok.py'",
    "loop": "'for i in 1 2; do python {f}.py; python ok.py; done'",
    "and": "python {f}.py && python ok.py",
}
#: Names of machines to their `sh`, and the shells that they have besides.
MACHINES = {"usual": ("sh", ()), "dash": ("dash", ("bash",)), "busybox": ("busybox", ("bash", "dash"))}
_SHELLS = ("sh", "bash", "dash", "rbash", "ash", "ksh", "zsh", "busybox")


@pytest.fixture(params=("usual", "dash", "busybox"))
def machine(request: pytest.FixtureRequest, shop: Shop, tmp_path: Path) -> str:
    """Let the shop's machine have this shell alone, but for the usual one; return its name."""
    if request.param == "usual":
        return "usual"
    shell = shutil.which(request.param)
    if shell is None:
        pytest.skip(f"no {request.param} here")
    programs = tmp_path / "programs"
    programs.mkdir()
    for directory in reversed(os.environ["PATH"].split(os.pathsep)):
        for found in Path(directory).glob("*"):
            if found.name not in _SHELLS:
                (programs / found.name).unlink(missing_ok=True)
                (programs / found.name).symlink_to(found)
    (programs / "sh").symlink_to(shell)
    shop.env["PATH"] = f"{Path(sys.executable).parent}:{programs}"
    return str(request.param)


def test_a_part_that_fails_fails_the_job(shop: Shop, machine: str) -> None:
    for name, text in (("fail", FAIL), ("good", GOOD), ("ok", "print('evaluated')")):
        (shop.root / f"{name}.py").write_text(text)
    for name, command in COMMANDS.items():
        shop.spec(f"command: {command}\n{METRIC}", name=name)
    assert "warning" not in shop.run("plan").stdout
    shop.run("apply", code=1)
    seen = {name: {job["parameters"]["f"]: job for job in shop.json("list", "jobs", name)} for name in COMMANDS}
    good = {name: jobs["good"]["state"] for name, jobs in seen.items()}
    assert good == dict.fromkeys(COMMANDS, "succeeded")
    failed = {name: (jobs["fail"]["state"], jobs["fail"]["reason"]) for name, jobs in seen.items()}
    expected = dict.fromkeys(COMMANDS, ("failed", "exit code 1"))
    if machine == "dash":  # it has no pipefail
        log = shop.run("logs", seen["pipe"]["fail"]["job"]).stdout
        assert "without bash, only the last part of a pipe can fail" in log
        del failed["pipe"], expected["pipe"]
    assert failed == expected
    first = shop.run("results", "lines").stdout.splitlines()[1]
    assert first.startswith("good"), "not the one that logged a lucky first step"


def test_what_no_shell_sees_is_warned_of_with_its_line(shop: Shop) -> None:
    shop.spec("outputs: []\ncommand: |\n  set -u\n  python a.py &\n  python b.py & wait\n", name="background")
    shop.spec("outputs: []\ncommand: 'python a.py || true'\n", name="always")
    shop.spec("outputs: []\ncommand: python a.py {i} &\n", name="left")
    shop.spec("outputs: []\ncommand:\n  python a.py && python b.py;\n  python c.py\n", name="half")
    shop.spec("outputs: []\ncommand: |\n  python a.py\n  code=$?\n  exit $code\n", name="status")
    shop.spec("outputs: []\ncommand: python a.py 2>&1 | grep -v '& wait' > log && python b.py\n", name="fine")
    said = [line.partition("warning: ")[2] for line in shop.run("plan").stdout.splitlines() if "warning: " in line]
    advice = {
        "background.yaml:7": '`pids="$pids $!"` after each `&`',
        "always.yaml:4": "leave out `|| true`",
        "left.yaml:4": "leave out its `&`",
        "half.yaml:5": "a line of its own",
        "status.yaml:6": "COMMAND || code=$?",
    }
    places = {line.partition(": ")[0].removeprefix("specs/"): line for line in said}
    assert sorted(places) == sorted(advice)
    assert all(advice[place] in line for place, line in places.items()), said


def test_a_reason_names_a_pipe_that_was_closed_early(shop: Shop) -> None:
    if not shutil.which("bash"):
        pytest.skip("no bash here")
    shop.spec("outputs: []\ncommand: yes {i} | head -n 1\n", jobs=1)
    shop.run("apply", code=1)
    (job,) = shop.json("list", "jobs", "sweep")
    assert job["reason"].startswith("exit code 141 (SIGPIPE) (hint: a program such as `head`")


def test_a_job_is_shown_as_it_runs_and_finished_ones_stay_so(shop: Shop) -> None:
    shop.spec("outputs: []\ncommand: echo {i} | cat; true\n", jobs=2)
    shop.run("apply")
    job = shop.json("list", "jobs", "sweep")[0]["job"]
    assert "bash --posix -eo pipefail -c 'echo \"${MONKEY_P_0}\" | cat; true'" in shop.run("info", job).stdout
    assert "nothing to do" in shop.run("apply").stdout
    assert "a part of its command fails" not in shop.run("plan").stdout
