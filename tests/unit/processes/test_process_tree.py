"""Descendants of a process: of /proc, and of `ps` where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from monkey.processes import process_tree
from monkey.processes.process_tree import list_descendants

#: Starts one below it, says so, and waits for the end of its input.
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """Run a process with a child; gives both pids."""
    command = [sys.executable, "-I", "-S", "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        yield parent.pid, int(parent.stdout.readline())
        parent.stdin.close()


@pytest.mark.parametrize("source", ["children", "stat", "ps"])
def test_a_child_and_its_child_are_found_and_ps_is_not(
    source: str, family: tuple[int, int], require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "children" and not process_tree.LISTS_CHILDREN:
        pytest.skip("the kernel does not list children")
    if source == "ps":
        require("ps")
    monkeypatch.setattr(process_tree, "LISTS_CHILDREN", source == "children")
    monkeypatch.setattr(process_tree, "HAS_PROC", source != "ps")
    assert list_descendants([family[0]]) == [family[1]]
    found = list_descendants([os.getpid()])
    assert set(family) <= set(found)
    assert not any(b"ppid=" in process_tree.read_proc(f"/proc/{pid}/cmdline") for pid in found)
