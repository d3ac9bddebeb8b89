"""What `monkey sync` costs while nothing happens: a day of rounds, one after another without the waits.

A day at the default interval is 1,440 rounds, each with its heartbeat; every tenth plans again (ten minutes), and every
sixtieth meets a new commit. Bars: an unchanged round takes at most 0.2 s of CPU with its git and its heartbeat, and
memory does not grow: of the day's second half by at most 1 MB.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from _common import report

from monkey.apply.sync.beat_writer import BeatWriter
from monkey.apply.sync.sync_clone import SyncClone
from monkey.apply.sync.sync_directory import SyncDirectory
from monkey.apply.sync.sync_order import SyncOrder
from monkey.apply.sync.sync_rounds import SyncRounds
from monkey.protocol.status.sync_beat import SyncBeat

ROUNDS, DRIFT, CHANGE = 1_440, 10, 60

MONKEY_YAML = "project: bench\nstore: {store}\nproviders: {{local: {{idle_timeout: 1s}}}}\n"
SPEC = """\
name: day
command: ["true", "{{i}}"]
parameters: {{i: {{range: [0, {jobs}]}}}}
code: {{include: [none.txt]}}
"""


def cpu() -> float:
    """Return the seconds of CPU of this process and the children it waited for."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def memory() -> float:
    """Return the resident memory in MB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Day:
    """A remote, and the sync that follows it."""

    def __init__(self, root: Path) -> None:
        """Make both."""
        self.work, self.remote = root / "work", root / "bench.git"
        self._git(root, "init", "-q", "--bare", str(self.remote))
        self._git(root, "init", "-q", str(self.work))
        (self.work / "specs").mkdir()
        (self.work / "none.txt").write_text("none\n")
        (self.work / "monkey.yaml").write_text(MONKEY_YAML.format(store=root / "store"))
        directory = SyncDirectory(root / "state", "bench")
        directory.open()
        order = SyncOrder(str(self.remote), "main", 60.0, root / "state")
        self.writer = BeatWriter(print)
        beat = SyncBeat(order.shown, "main", "here", 60.0, time.time())
        clone = SyncClone(directory, order.remote, "main")
        self.rounds = SyncRounds(order, clone, self.writer, "here.0", lambda text: None, beat)
        self.rounds.begin()

    def push(self, jobs: int) -> None:
        """Push a commit of so many jobs."""
        (self.work / "specs" / "day.yaml").write_text(SPEC.format(jobs=jobs))
        self._git(self.work, "add", "-A")
        self._git(self.work, "commit", "-qm", "more")
        self._git(self.work, "push", "-q", str(self.remote), "HEAD:main")

    def _git(self, at: Path, *arguments: str) -> None:
        author = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *author, "-C", str(at), *arguments], check=True)

    def round(self, *, drift: bool) -> float:
        """Do one round with its heartbeat, and return its seconds of CPU."""
        if drift:
            self.rounds._again = 0.0
        begun = cpu()
        if not self.rounds.run_round():
            raise SystemExit(f"a round failed: {self.rounds.beat}")
        self.writer.write()
        return cpu() - begun


def main() -> None:
    """Live through the day."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ |= {"XDG_STATE_HOME": f"{root}/s", "XDG_CACHE_HOME": f"{root}/c", "XDG_CONFIG_HOME": f"{root}/g"}
        day, taken, sizes = Day(root), {"unchanged": [], "drift": [], "changed": []}, []
        for at in range(ROUNDS):
            kind = "changed" if at % CHANGE == 0 else "drift" if at % DRIFT == 0 else "unchanged"
            if kind == "changed":
                day.push(at // CHANGE + 1)
            taken[kind].append(day.round(drift=kind == "drift"))
            if at % CHANGE == CHANGE - 1:
                sizes.append(memory())
        told = {kind: statistics.median(values) for kind, values in taken.items()}
        for kind, values in taken.items():
            print(f"{kind}: median {told[kind]:.3f} s of CPU, at most {max(values):.3f} s, {len(values)} rounds")
        half = sizes[len(sizes) // 2]
        print(f"memory: {sizes[0]:.1f} MB after an hour, {half:.1f} MB after half a day, {sizes[-1]:.1f} MB at its end")
        growth = sizes[-1] - half
        report("sync", "s", told["unchanged"], {}, told["unchanged"] / 0.2, growth_mb=round(growth, 2), **told)


if __name__ == "__main__":
    main()
