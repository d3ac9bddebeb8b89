"""`monkey plan` in random repositories of a stranger: it starts git alone, and writes nothing but its own cache.

Two seeds are quick; `--seeds N` takes more of them, at most 200, and MONKEY_LONG=1 all 200: five minutes.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY
from tests.acceptance.test_stranger import FLAGS
from tests.hostile_repository import PRIVATE, HostileRepository

FEW, MOST = 2, 200
#: Calls that start a program, talk to another machine, or change a file system.
CALLS = (
    "execve,execveat,connect,open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,rename,renameat,renameat2,link,linkat,"
    "symlink,symlinkat,unlink,unlinkat,rmdir,truncate,chmod,fchmodat,chown,lchown,fchownat,utimensat,setxattr"
)
CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?", re.MULTILINE)
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        asked = MOST if "MONKEY_LONG" in os.environ else metafunc.config.getoption("--seeds") or FEW
        metafunc.parametrize("seed", range(min(asked, MOST)))


def listing(root: Path) -> dict[str, str]:
    """Return what is below a directory: path to what is there."""
    found = {}
    for directory, names, files in os.walk(root):
        for name in [*names, *files]:
            path = Path(directory, name)
            status = path.lstat()
            kind = str(path.readlink()) if path.is_symlink() else ""
            if stat.S_ISREG(status.st_mode):
                kind = f"{status.st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            found[os.fsencode(path).decode(errors="replace")] = f"{status.st_mode} {kind}"
    return found


def offences(trace: str, allowed: tuple[str, ...]) -> list[str]:
    """Return the calls of a trace that a plan must not make; the first one started it."""
    found = []
    for at, (call, words, result, opened) in enumerate(CALL.findall(trace)):
        if result.startswith("-") or at == 0:
            continue
        if call.startswith("execve"):
            started = WORD.findall(words)
            wrong = Path(started[0]).name != "git" or started[2 : 2 + len(FLAGS)] != FLAGS
        elif call == "connect":
            wrong = "AF_UNIX" not in words and "AF_UNSPEC" not in words
        elif call.startswith(("open", "creat")):
            wrong = bool(re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", words)) and not is_ours(opened, allowed)
        else:
            base = re.search(r"AT_FDCWD<([^>]*)>|\d+<([^>]*)>", words)
            top = (base[1] or base[2]) if base else ""
            wrong = not all(is_ours(str(Path(top, path)), allowed) for path in WORD.findall(words))
        if wrong:
            found.append(f"{call}({words}) = {result} {opened}"[:300])
    return found


def is_ours(path: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a path, links followed, lies in one of these directories."""
    above, name = os.path.split(path)
    real = f"{os.path.realpath(above)}/{name}"
    return real == os.devnull or any(real == top or real.startswith(f"{top}/") for top in allowed)


def plan(
    hostile: HostileRepository, strace: str, base: Path, *specs: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Plan there, for all specs or for these, under strace; returns what it said, and the trace."""
    trace, home = base / "trace", hostile.home
    # What Python compiles of monkey itself is not the branch's.
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(base / "tmp")}
    env |= {"XDG_CACHE_HOME": str(base / "cache"), "XDG_STATE_HOME": str(base / "state")}
    command = [strace, "-f", "-y", "-s", "4096", "-e", f"trace={CALLS}", "-o", str(trace), *MONKEY, "plan", *specs]
    done = subprocess.run(
        command, cwd=hostile.root, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300
    )
    out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(command, done.returncode, out, err), trace.read_text(errors="replace")


def test_a_plan_starts_git_alone_and_writes_its_own_cache_alone(
    seed: int, tmp_path: Path, require: Callable[[str], str]
) -> None:
    strace = require("strace")
    require("git")
    base = Path(os.path.realpath(tmp_path))
    for name in ("tmp", "cache"):
        (base / name).mkdir()
    hostile = HostileRepository(base, seed)
    before = {**listing(hostile.root), **listing(hostile.home)}
    done, trace = plan(hostile, strace, base, *(["specs/sweep.yaml"] if seed % 2 else []))
    if "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
    told = f"seed {seed}, {hostile.traps}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode in (0, 1) and "bug in monkey" not in done.stderr and "Traceback" not in done.stderr, told
    assert not offences(trace, (str(base / "cache/monkey"),)), told
    assert not hostile.pwned.exists(), told
    assert PRIVATE.split()[-1] not in done.stdout + done.stderr and "root:x:" not in done.stdout + done.stderr, told
    after = {**listing(hostile.root), **listing(hostile.home)}
    assert after == before, told
