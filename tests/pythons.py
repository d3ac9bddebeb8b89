"""The Pythons that users have, besides the one that runs the tests: where each is, and an environment of ours in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.embedded_python import embedded_directory, install_embedded
from tests.services import CACHE

#: Finds interpreters, and fills an environment in seconds: from its cache, by hard links. Its version and hashes.
UV_LOCK = Path(__file__).parents[1] / ".ci/uv.txt"
#: Name → the versions that will do, as uv reads them. Debian 12 has 3.11.2: before 3.11.5, CPython's `re` matches
#: possessive quantifiers wrongly, which a newer one does not show.
PYTHONS = {"python3.11": ">=3.11,<3.11.5", "python3.12": "3.12", "python3.13": "3.13", "python3.14": "3.14"}
#: The one of them with most faults of its own.
OLDEST = "python3.11"
#: The one of them that a Go module has, too.
EMBEDDED = "python3.14"


def select_tests(name: str) -> str:
    """Return pytest's words for the quick tests of one of them: those of text, numbers and processes.

    The oldest runs what sends metrics, too. The Python that runs this runs all tests, and is a 3.11 in CI: a later one
    than Debian's differs from it in few faults, which are those of text.
    """
    rooms = ["spec", "plan", "protocol", "metrics", "transfer", "processes", "monkey_stacks/engine"]
    rooms += [f"monkey_agent/{room}" for room in ("supervisor", "execution", "facts")]
    paths = ["plans", *(f"unit/{room}" for room in rooms)]
    paths += ["acceptance/test_backfill.py"] if name == OLDEST else []
    return " ".join(["-m 'not slow'", *(f"tests/{path}" for path in paths)])


def find(name: str) -> str | None:
    """Return where an interpreter is: on the PATH, of pyenv, unpacked or of uv's own; None where it is nowhere."""
    done = run_uv("python", "find", "--system", "--no-python-downloads", PYTHONS[name])
    return done.stdout.strip() if done.returncode == 0 else None


def install(name: str) -> str | None:
    """Have uv fetch an interpreter, or else Go, and return where it is.

    Raises OSError and CalledProcessError where that fails.
    """
    try:
        _run("python", "install", "--no-bin", PYTHONS[name])
    except subprocess.CalledProcessError:
        if name != EMBEDDED:
            raise
        install_embedded()
    return find(name)


def environment(interpreter: str, name: str, root: Path) -> Path:
    """Return where the programs of an environment are that has what the tests of the repository at `root` need.

    It is made anew, in `.pythons/` there. Raises CalledProcessError where that fails.
    """
    place = root / ".pythons" / name
    _run("venv", "--clear", "--seed", "--no-project", "--python", interpreter, str(place))
    into = ("pip", "install", "--python", f"{place}/bin/python")
    # As `.ci/run` does it: the versions and hashes of the lock, and no build that fetches others.
    _run(*into, "--require-hashes", "-r", f"{root}/.ci/requirements.txt")
    _run(*into, "--no-deps", "--no-build-isolation", "-e", str(root))
    return place / "bin"


def _run(*words: str) -> None:
    done = run_uv(*words)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, flush=True)
        done.check_returncode()


def run_uv(*words: str, cwd: Path = Path("/"), said: str = "") -> subprocess.CompletedProcess[str]:
    """Run uv, which has an environment of its own: some tests ask whether ours has it."""
    version = re.findall(r"^uv==(\S+)", UV_LOCK.read_text(), re.MULTILINE)[0]
    program = CACHE / f"uv@{version}/bin/uv"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", program.parents[1]], check=True)
        locked = ["install", "-q", "--require-hashes", "-r", UV_LOCK]
        subprocess.run([program.with_name("pip"), *locked], check=True)
    # pyenv has programs on the PATH that fail; its interpreters themselves lie elsewhere.
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob("versions/*/bin")
    unpacked = embedded_directory() / "bin"
    path = os.pathsep.join([*map(str, pyenv), os.environ.get("PATH", os.defpath), str(unpacked)])
    # The machine trusts what stands between it and the index, where something does; uv's own list does not.
    ours = {"PATH": path, "UV_SYSTEM_CERTS": "1"}
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | ours
    return subprocess.run([program, *words], cwd=cwd, env=env, input=said, capture_output=True, text=True)
