"""What is on disk when: the order of system calls, as strace saw it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_CALL = re.compile(r"^\d+ +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_TRACED = "write,copy_file_range,fsync,fdatasync,syncfs,link,linkat,rename,renameat,renameat2,mkdir,mkdirat"


@dataclass
class Disk:
    """What the calls so far made of the disk: what would survive, what would not."""

    root: Path
    #: Files and directories with bytes or entries that are not synced.
    dirty: set[str] = field(default_factory=set)
    #: Under their keys: files that were published while their bytes were not on disk.
    torn: set[str] = field(default_factory=set)
    syncs: int = 0

    def wrote(self, path: str) -> None:
        self.dirty.add(path)

    def synced(self, path: str | None) -> None:
        """`path` is on disk now; None: all is."""
        self.syncs += 1
        if path is None:
            self.dirty.clear()
        else:
            self.dirty.discard(path)

    def named(self, source: str, target: str) -> None:
        for path in [path for path in self.dirty if path == source or path.startswith(f"{source}/")]:
            self.torn.add(target + path[len(source) :])
            self.dirty.add(target + path[len(source) :])
        self.dirty.add(str(Path(target).parent))

    def made(self, path: str) -> None:
        self.dirty.update((path, str(Path(path).parent)))

    def survives(self, key: str) -> bool:
        """Tell whether `key` would be there, whole, after a loss of power now."""
        path = self.root / key
        above = [str(p) for p in path.parents if p == self.root or self.root in p.parents]
        return not self.dirty & {str(path), *above}


def replay(trace: Path, disk: Disk) -> Iterator[str]:
    """Apply the calls of a trace to `disk`; yields each line that the program printed, when it printed it."""
    for line in _joined(trace):
        call = _CALL.match(line)
        if call is None or int(call["result"]) < 0:
            continue
        name, arguments = call["name"], call["arguments"]
        paths = re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)
        opened = re.findall(r"\b\d+<([^>]*)>", arguments)
        if name == "write" and arguments.startswith("1<"):
            yield paths[0].removesuffix("\\n")
        elif name in ("write", "copy_file_range"):
            disk.wrote(opened[-1])
        elif name in ("fsync", "fdatasync"):
            disk.synced(opened[0])
        elif name == "syncfs":
            disk.synced(None)
        elif name.startswith("mkdir"):
            disk.made(str(Path(opened[0], paths[0])) if name == "mkdirat" and opened else paths[0])
        elif name.startswith(("link", "rename")):
            disk.named(*(str(Path(*beside)) for beside in zip(opened or [disk.root] * 2, paths, strict=True)))


def _joined(trace: Path) -> Iterator[str]:
    """Yield whole calls: strace splits what another thread interrupts."""
    waiting: dict[str, str] = {}
    for line in trace.read_text().splitlines():
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            waiting[thread] = line.removesuffix("<unfinished ...>")
        elif resumed := re.match(r"^\d+ +<\.\.\. \w+ resumed>(.*)$", line):
            yield waiting.pop(thread) + resumed[1]
        else:
            yield line


@pytest.fixture
def traced(require: Callable[[str], str], tmp_path: Path) -> Callable[..., tuple[Path, Disk]]:
    """Return a function that runs a story of worker.py under strace; more words are options of strace."""
    strace = require("strace")

    def run(story: str, *options: str) -> tuple[Path, Disk]:
        trace, place = tmp_path / "trace", tmp_path / "store"
        worker = Path(__file__).with_name("worker.py")
        command = [strace, "-f", "-y", "-s", "4096", "-o", str(trace), "-e", f"trace={_TRACED}", *options]
        done = subprocess.run(
            [*command, sys.executable, str(worker), story, str(place)], capture_output=True, text=True, timeout=120
        )
        if "ptrace" in done.stderr:
            pytest.skip(f"strace may not trace here: {done.stderr.splitlines()[0]}")
        assert done.returncode == 0, done.stderr
        return trace, Disk(place)

    return run


def test_an_answered_entry_would_survive_and_none_is_ever_torn(traced: Callable[..., tuple[Path, Disk]]) -> None:
    trace, disk = traced("durable")
    answers, syncs = [], {}
    for said in replay(trace, disk):
        answers.append(said)
        syncs[said.split()[-1]] = disk.syncs
        for key in said.split()[1:]:
            assert disk.survives(key), f"{key} was answered, and would not survive"
            if key.startswith("jobs/") and key[-1] in "246":  # what the same client wrote beside it, too
                assert disk.survives(f"{key[:-1]}{int(key[-1]) - 1}"), f"{key} stands beside an entry that may be torn"
    assert [said.split()[0] for said in answers] == ["begun"] + 6 * ["answered"]
    durable = {str(disk.root / key) for said in answers for key in said.split()[1:]}
    assert not durable & disk.torn
    # Of the bytes of both entries, and of their directory: those above it are on disk.
    assert syncs["jobs/a/4"] - syncs["jobs/a/2"] == 3
    # Forty that waited together: each alone would cost a sync of its bytes and one of its directory.
    assert syncs["log/39"] - syncs["jobs/many19/2"] < 60


@pytest.mark.slow
def test_many_files_would_survive_and_none_is_ever_torn(traced: Callable[..., tuple[Path, Disk]]) -> None:
    trace, disk = traced("contents")
    keys, begun = list[str](), 0
    for said in replay(trace, disk):
        begun = disk.syncs if said == "begun" else begun
        if said.startswith("answered "):  # others on the same descriptor: the processes that copy
            keys += said.split()[1:]
            assert all(disk.survives(key) for key in said.split()[1:])
    assert len(keys) == len(set(keys)) == 1101
    assert not any("files/md5" in path for path in disk.torn)
    assert disk.syncs - begun < 300, "a directory each at the most, not a file each"


def test_entry_in_a_directory_that_cannot_be_synced_is_not_told_as_durable(
    traced: Callable[..., tuple[Path, Disk]], tmp_path: Path
) -> None:
    jobs = tmp_path / "store/jobs"
    trace, _ = traced("unsynced", "-P", str(jobs), "-e", "inject=fsync:error=EIO")
    assert len(re.findall(r"fsync\(.*EIO.*INJECTED", trace.read_text())) == 2


def test_the_trace_would_show_a_missing_sync(traced: Callable[..., tuple[Path, Disk]]) -> None:
    trace, disk = traced("forget")
    [_, said] = replay(trace, disk)
    assert said == "answered jobs/a/2"
    assert not disk.survives("jobs/a/2")
    assert str(disk.root / "jobs/a/2") in disk.torn
