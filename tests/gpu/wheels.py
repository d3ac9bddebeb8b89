"""Wheels of monkey and of all that a base install needs, for a machine that reaches no registry.

`python wheels.py DIRECTORY` fetches them in the versions of the lock, for x86-64 Linux and Python 3.11 to 3.14. pip is
among them: a bare machine's `venv` may have none.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64")
#: Bytes that may travel to the machine: the wheels, and the files that git tracks.
LIMIT = 64 << 20


def fetch_wheels(into: Path) -> None:
    """Fill an empty or new directory. Raises CalledProcessError, for which pip said why."""
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", into, ROOT], check=True)
    [ours] = into.glob("monkey_sweep-*.whl")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as versions:
        locked = re.findall(r"^[\w.-]+==[^\s;]+", (ROOT / ".ci/requirements.txt").read_text(), re.MULTILINE)
        versions.write("\n".join(locked))
        versions.flush()
        for python in PYTHONS:
            target = [word for platform in PLATFORMS for word in ("--platform", platform)]
            target += ["--python-version", python, "--implementation", "cp", "--only-binary", ":all:"]
            fetch = [*pip, "download", "-q", "-d", into, "-c", versions.name, *target]
            subprocess.run([*fetch, ours, "pip"], check=True)


def measure_load(wheels: Path) -> int:
    """Return the bytes of the wheels, and of the files that git tracks."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    files = [ROOT / name for name in tracked.decode().split("\0") if name]
    return sum(path.stat().st_size for path in [*files, *wheels.iterdir()] if path.is_file())


def check_load(wheels: Path) -> int:
    """Say how much travels, and return what to exit with."""
    load, count = measure_load(wheels), len(list(wheels.glob("*.whl")))
    told = f"{count} wheels in {wheels}; with the working tree {load / 2**20:.1f} MiB travel"
    if load > LIMIT:
        print(f"FAILED: {told}: expected at most {LIMIT >> 20} MiB", file=sys.stderr)
        return 1
    print(f"ok: {told}, of at most {LIMIT >> 20} MiB")
    return 0


def main() -> int:
    """Fetch the wheels, and return what to exit with."""
    into = Path(sys.argv[1])
    into.mkdir(parents=True, exist_ok=True)
    for old in into.glob("*.whl"):
        old.unlink()
    fetch_wheels(into)
    return check_load(into)


if __name__ == "__main__":
    sys.exit(main())
