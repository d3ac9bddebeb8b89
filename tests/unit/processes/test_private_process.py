"""What helpers get: variables, descriptors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monkey.processes import process_tree
from monkey.processes.private_process import select_needed_variables

#: Makes a descriptor that programs inherit, seals it, and starts a program that says what it holds.
STARTS = """
import os, sys
from monkey.processes.private_process import seal_descriptors
os.dup2(0, 9, inheritable=True)
seal_descriptors()
words = ["sh", "-c", "test ! -e /proc/$$/fd/9 || exit 3; test -e /proc/$$/fd/2"]
pid = os.posix_spawn("/bin/sh", words, os.environ)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_helper_gets_what_it_needs_and_no_secret() -> None:
    needed = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "XDG_STATE_HOME": "/s", "LD_LIBRARY_PATH": "/l"}
    others = {"AWS_SECRET_ACCESS_KEY": "s", "WANDB_API_KEY": "s", "PYTHON_TOKEN": "s", "MONKEY_WITHHELD": "A"}
    assert select_needed_variables({**needed, **others}) == needed


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_programs_inherit_the_standard_streams_alone() -> None:
    done = subprocess.run([sys.executable, "-c", STARTS], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
