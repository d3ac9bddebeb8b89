"""What a script ends with in real shells: bash, dash without pipefail, and busybox alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from monkey.spec.command.strict_shell import SETUP_SHELL
from tests.unit.spec.commands import compiled

#: A name for a machine's shells to the program that is its `sh`, and whether there is a bash, too.
SHELLS = {"bash": ("dash", True), "dash": ("dash", False), "busybox": ("busybox", False), "sh is bash": ("bash", False)}
PROGRAMS = ("cat", "tee", "env", "sleep", "true", "false", "grep", "head", "yes", "kill", "touch", "echo")


@pytest.fixture(params=SHELLS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a directory with the programs of a machine that has these shells alone."""
    name, with_bash = SHELLS[request.param]
    (tmp_path / request.param).mkdir()
    for program, target in [*((each, each) for each in PROGRAMS), ("sh", name), *([("bash", "bash")] * with_bash)]:
        found = shutil.which(target)
        if not found:
            pytest.skip(f"no {target} here")
        (tmp_path / request.param / program).symlink_to(found)
    return tmp_path / request.param


def run(script: str, path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    rendered = compiled(script).render({})
    env = {"PATH": str(path), **rendered.env, **env}
    return subprocess.run(rendered.argv, env=env, cwd=path, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("false; true", 1),
        ("exit 7\ntrue", 7),
        ("(exit 7)\necho never", 7),
        ("sh -c 'exit 7'; echo never", 7),
        ("env false; echo never; true", 1),
        ("x=$(exit 7); echo never", 7),
        ("for i in 1 2; do false; echo never; done", 1),
        ("{{ false; echo never; }}", 1),
        ("(false; echo never) | cat >&2; true", None),
        ("sh -c 'kill -9 $$'; echo never", 137),
        ("missing-program; echo never", 127),
    ],
)
def test_a_script_stops_where_a_part_fails(script: str, code: int | None, path: Path) -> None:
    done = run(script, path)
    assert "never" not in done.stdout + done.stderr.replace("echo never", "")
    if code is not None:
        assert done.returncode == code, done


def test_what_stands_in_a_substitution_stops_too(path: Path) -> None:
    expected = 0 if path.name == "busybox" else 1  # there, -e does not hold in `$(…)`
    assert run("x=$(false; true); true", path).returncode == expected


@pytest.mark.parametrize("script", ["sh -c 'exit 7' | tee log", "sh -c 'exit 7' | cat | cat", "(exit 7) | cat; true"])
def test_a_pipe_fails_where_its_first_part_does(script: str, path: Path) -> None:
    has_pipefail = (
        path.name != "dash"
        or subprocess.run(["dash", "-c", "set -o pipefail"], stderr=subprocess.DEVNULL).returncode == 0
    )
    assert run(script, path).returncode == (7 if has_pipefail else 0)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("false || echo a", "a\n"),
        ("if false; then echo a; else echo b; fi; echo c", "b\nc\n"),
        ("while false; do echo a; done; echo b", "b\n"),
        ("! false; echo a", "a\n"),
        ("false && echo a; echo b", "b\n"),
        ("code=0; (exit 3) || code=$?; echo $code", "3\n"),
        ("grep x /dev/null || true; echo a", "a\n"),
        ("n=$(grep -c x /dev/null || true); echo $n", "0\n"),
        ("(yes || true) | head -n 1", "y\n"),
        ("set +e; false; echo $?", "1\n"),
        ("false | true || true; echo a", "a\n"),
        ("trap 'echo ended' EXIT; echo a", "a\nended\n"),
        ('echo "$0 $#"', "sh 0\n"),
        ("true && exec env echo a", "a\n"),
    ],
)
def test_conditions_and_ways_out_go_on(script: str, said: str, path: Path) -> None:
    done = run(script, path)
    assert (done.returncode, done.stdout) == (0, said), done


def test_a_pipe_that_is_closed_early_fails_with_sigpipe(path: Path) -> None:
    expected = 0 if path.name == "dash" else 128 + signal.SIGPIPE
    assert run("yes | head -n 1", path).returncode == expected


def test_no_file_of_the_user_s_is_read_before_it(path: Path) -> None:
    (path / "rc").write_text("touch read; false\n")
    assert run("true; true", path, BASH_ENV=str(path / "rc"), ENV=str(path / "rc")).returncode == 0
    assert not (path / "read").exists()
    assert "POSIXLY_CORRECT" not in run("true; env", path).stdout, "programs would behave otherwise"


@pytest.mark.parametrize("script", ["exec sleep 60", "true; exec sleep 60", "sleep 60 | cat", "true; sleep 60"])
def test_sigterm_to_its_processes_ends_it_by_that_signal(script: str, path: Path) -> None:
    rendered = compiled(f"echo begun; {script}").render({})
    env = {"PATH": str(path)}
    with subprocess.Popen(rendered.argv, env=env, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) in (-signal.SIGTERM, 128 + signal.SIGTERM)


def test_a_file_runs_likewise(path: Path) -> None:
    (path / "setup.sh").write_text("echo first\nfalse\necho never\n")
    done = subprocess.run([*SETUP_SHELL, "setup.sh"], env={"PATH": str(path)}, cwd=path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "first\n")
