"""Ray's own distributions: two files of its wheel, which need neither the rest of Ray nor a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.services import CACHE

RAY = "ray@2.60.0"
#: What pip downloads, whatever Python and machine this is: the files are of Python alone.
_WHEEL = ("--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--only-binary", ":all:", "--no-deps")
_LOCKED = "ray==2.60.0 --hash=sha256:e227f6b2af8ab4626dd9a35a5860b33864325ea137383d57f854d4637ee3fea2\n"
_FILES = ("ray/tune/search/sample.py", "ray/util/annotations.py")
_PROGRAM = """\
import json, sys
from ray.tune.search import sample
for name, arguments, count, seed in json.load(sys.stdin):
    drawn = getattr(sample, name)(*arguments).sample(size=count, random_state=seed)
    print(json.dumps([float(value) for value in drawn]))
"""


def ray_directory() -> Path:
    """Return where the files are, or would be."""
    return CACHE / RAY


def install_ray() -> None:
    """Download the wheel, and keep the files. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=RAY) as scratch:
        locked = Path(scratch, "locked.txt")
        locked.write_text(_LOCKED)
        pip = [sys.executable, "-m", "pip", "download", "-q", *_WHEEL, "--require-hashes"]
        subprocess.run([*pip, "-r", locked, "-d", scratch], check=True)
        [wheel] = Path(scratch).glob("*.whl")
        aside = Path(scratch, "aside")
        with zipfile.ZipFile(wheel) as archive:
            for name in _FILES:
                archive.extract(name, aside)
        aside.rename(ray_directory())


def draw_samples(asked: list[tuple[str, list[float], int, int]]) -> list[list[float]]:
    """Return Ray's draws of each: a distribution's name, its arguments, how many, and a seed."""
    env = {**os.environ, "PYTHONPATH": str(ray_directory())}
    words = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(words, env=env, input=json.dumps(asked), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
