"""A project that is pushed to a remote, and syncs that follow it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.shop import Shop, until
from tests.git_remote import GitRemote

#: Seconds between looks of a sync here.
INTERVAL = "0.2s"


class Follower:
    """A shop whose project is a clone of a remote; its store lies outside of it."""

    def __init__(self, shop: Shop) -> None:
        """Push the project's first commit, without a spec."""
        self.shop = shop
        self.store = shop.root.parent / "store"
        text = f"project: shop\nstore: {self.store}\nproviders: {{local: {{idle_timeout: 1s}}}}\n"
        (shop.root / "monkey.yaml").write_text(text)
        self.remote = GitRemote(shop.root.parent, shop.root)

    def push(self, name: str = "sweep", jobs: int = 3, text: str = "") -> str:
        """Write a spec, push it, and return the commit."""
        self.shop.spec(text, name=name, jobs=jobs)
        return self.remote.commit()

    def once(self, *options: str, code: int = 0) -> str:
        """Have a sync look once, and return what it said."""
        return self.shop.run("sync", "--once", *options, code=code).stdout

    def start(self, *options: str) -> subprocess.Popen[Any]:
        """Start a sync that goes on."""
        return self.shop.start("sync", "--interval", INTERVAL, *options, stdout=subprocess.DEVNULL)

    def stop(self, sync: subprocess.Popen[Any]) -> None:
        """End a sync by SIGTERM."""
        os.kill(sync.pid, signal.SIGTERM)
        _, said = sync.communicate(timeout=60)
        assert sync.returncode == 0, said

    def measure_cpu(self, sync: subprocess.Popen[Any]) -> float:
        """Return the seconds of CPU that a sync used, with those of its gits."""
        fields = Path(f"/proc/{sync.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    @property
    def beats(self) -> list[Path]:
        """The heartbeats in the store."""
        return sorted(self.store.glob("projects/shop/sync/*/*/beat"))

    def beat(self) -> dict[str, Any]:
        """Return the newest heartbeat; {} for none."""
        found = [json.loads(path.read_bytes() or b"{}") for path in self.beats]
        return max(found, key=lambda beat: beat.get("at", 0), default={})

    def wait_for(self, **fields: object) -> dict[str, Any]:
        """Wait until the newest heartbeat has these fields."""
        return until(lambda: fields.items() <= (beat := self.beat()).items() and beat, f"the beat says {fields}")

    def wait_for_jobs(self, count: int) -> None:
        """Wait until so many jobs have ended, and see that each ran once."""
        ledger = self.shop.ledger
        until(lambda: len(ledger.digests) >= count, f"{count} jobs end, of which {len(ledger.digests)} have")
        assert not ledger.overlaps and set(ledger.begins.values()) == {1} and len(ledger.begins) == count

    def git_line(self) -> str:
        """Return what `monkey status` says of the sync."""
        [line] = [line for line in self.shop.run("status").stdout.splitlines() if line.startswith("git: ")]
        return line
