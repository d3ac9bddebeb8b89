"""A verb in a fork is what it is in an interpreter of its own: what it says, how it ends, and that it can be ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, Shop
from tests.verb_forks import VerbForks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")


def test_a_fork_says_what_an_interpreter_says(shop: Shop, tmp_path: Path) -> None:
    shop.spec(jobs=2)
    os.mkfifo(pipe := tmp_path / "pipe")
    stuck = ("plan", "-o", str(pipe))
    forks, colours = VerbForks(), {**shop.env, "NO_COLOR": "1"}
    try:
        for verb in (("plan",), ("status",), ("frobnicate",)):
            own, fork = (forks.run([*MONKEY, *verb], verb, shop.root, colours, 60) for _ in range(2))
            assert (own.returncode, own.stdout, own.stderr) == (fork.returncode, fork.stdout, fork.stderr)
        assert len(forks._idle) == 1, "one process served all of them"
        with pytest.raises(subprocess.TimeoutExpired):
            # It waits for a reader, who never comes.
            forks.run([*MONKEY, *stuck], stuck, shop.root, shop.env, 0.5)
        assert not forks._idle, "it was ended with its verb"
        assert forks.run([*MONKEY, "plan"], ("plan",), shop.root, shop.env, 60).stdout.count("new")
    finally:
        forks.close()
