"""How fast a dataset gets into a store: ours beside Debian's rclone and DVC's own push, on a directory.

Bars, ratios to rclone: 10,000 files of 10 KB at most 0.6, 100,000 of 1 KB at most 0.3, one of 2 GB at most 1, and each
of them at most 1 the second time, when all is there; in a DVC repository faster than `dvc push`, both times; never
300 MB of memory. The ratio that is reported is that of 10,000 files. Arguments choose among 10k, dvc, 100k, 2GB.

All are whole processes, with the same cache state: sources in the page cache, destinations new each round, no
hashes known the first time. Ours is `monkey push --path`. It alone is durable when it returns, and checks what it wrote
by content; rclone verifies hashes after its copies, too, and syncs nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from _common import MONKEY, Run, report, run, take_turns

ROUNDS = 5
#: Name to the number of files, the bytes of each, and the bar of the first time.
SHAPES = {"10k": (10_000, 10_000, 0.6), "100k": (100_000, 1_000, 0.3), "2GB": (1, 2_000_000_000, 1.0)}
#: Bytes of memory that ours may take.
MEMORY = 300_000_000

DVC = [sys.executable, "-m", "dvc"]


def fill(root: Path, files: int, size: int) -> Path:
    """Make a tree of files that differ."""
    for n in range(files):
        path = root / f"{n % 100:02d}" / f"{n:06d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        block = os.urandom(min(size, 1 << 20))
        with path.open("wb") as file:
            for at in range(0, size, len(block)):
                file.write(block[: size - at])
    return root


class Contest:
    """One shape of data, and who uploads it; each round into new destinations, then again into the same."""

    def __init__(self, home: Path, data: Path) -> None:
        """Work below `home`."""
        self._home, self._data, self._count = home, data, 0
        self.peak = 0
        self._last: dict[str, Path] = {}

    def _new(self, who: str) -> Path:
        """Return a new directory. Old ones stay: a file system is slow where much was just removed."""
        self._count += 1
        self._last[who] = self._home / f"{who}-{self._count}"
        self._last[who].mkdir()
        return self._last[who]

    def monkey_first(self) -> float:
        """Hash and upload, nothing known."""
        self._new("monkey")
        return self._monkey()

    def monkey_second(self) -> float:
        """Do it again."""
        return self._monkey()

    def _monkey(self) -> float:
        home = self._last["monkey"]
        env = {"XDG_CACHE_HOME": str(home / "cache")}
        ran: Run = run([MONKEY, "push", "--path", str(self._data)], cwd=home, env=env)
        self.peak = max(self.peak, ran.peak)
        return ran.seconds

    def rclone_first(self) -> float:
        """Copy to a new directory."""
        self._new("rclone")
        return self.rclone_second()

    def rclone_second(self) -> float:
        """Do it again."""
        return run(["rclone", "copy", "-q", str(self._data), str(self._last["rclone"] / "copy")]).seconds


class DvcContest(Contest):
    """Data that DVC tracks, in a repository: `dvc push` beside ours."""

    def __init__(self, home: Path, data: Path) -> None:
        """Track `data` in a repository of its own."""
        self._repository = home / "repository"
        self._repository.mkdir()
        self._env = {"DVC_SITE_CACHE_DIR": str(home / "site"), "DVC_NO_ANALYTICS": "1"}
        shutil.copytree(data, self._repository / "data")
        for words in (["init", "-q", "--no-scm"], ["add", "-q", "data"]):
            run([*DVC, *words], cwd=self._repository, env=self._env)
        super().__init__(home, self._repository / "data")

    def _monkey(self) -> float:
        (self._repository / "monkey.yaml").write_text(f"store: {self._last['monkey'] / 'store'}\n")
        ran = run([MONKEY, "push", "--path", "data"], cwd=self._repository, env=self._env)
        self.peak = max(self.peak, ran.peak)
        return ran.seconds

    def dvc_first(self) -> float:
        """Push to a new remote."""
        remote = self._new("dvc")
        run([*DVC, "remote", "add", "-q", "-f", "-d", "bench", str(remote)], cwd=self._repository, env=self._env)
        return self.dvc_second()

    def dvc_second(self) -> float:
        """Push again."""
        return run([*DVC, "push", "-q"], cwd=self._repository, env=self._env).seconds


def turns(contest: Contest, peer: str) -> dict[str, float]:
    """Return the medians of both, both times."""

    def both(who: str) -> Callable[[], float]:
        first: Callable[[], float] = getattr(contest, f"{who}_first")
        again: Callable[[], float] = getattr(contest, f"{who}_second")

        def measure() -> float:
            seconds[who].append(first())
            return again()

        return measure

    seconds: dict[str, list[float]] = {"monkey": [], peer: []}
    second = take_turns({who: both(who) for who in seconds}, ROUNDS)
    first = {who: sorted(values)[len(values) // 2] for who, values in seconds.items()}
    return {f"{who} {when}": of[who] for when, of in (("first", first), ("second", second)) for who in (peer, "monkey")}


def contests(root: Path, chosen: Sequence[str]) -> Iterator[tuple[str, str, Contest]]:
    """Yield a name, the peer and the contest, one after the other; nothing of it is left afterwards."""
    for name, (files, size, _) in SHAPES.items():
        tracked = name == "10k" and "dvc" in chosen
        if name not in chosen and not tracked:
            continue
        with tempfile.TemporaryDirectory(dir=root) as home:
            data = fill(Path(home, "data"), files, size)
            if name in chosen and shutil.which("rclone"):
                yield name, "rclone", Contest(Path(home), data)
            elif name in chosen:
                print("rclone is left out: `invoke services` installs it", flush=True)
            if tracked:
                (Path(home) / "dvc").mkdir()
                yield "dvc", "dvc", DvcContest(Path(home) / "dvc", data)


def bar(name: str) -> float:
    """Return the bar of the first time."""
    return SHAPES[name][2] if name in SHAPES else 1.0


def main() -> None:
    """Measure and report."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, Mapping[str, float]] = {}
    peak, met = 0, True
    chosen = sys.argv[1:] or [*SHAPES, "dvc"]
    with tempfile.TemporaryDirectory(prefix="monkey-transfer-") as root:
        for name, peer, contest in contests(Path(root), chosen):
            medians = turns(contest, peer)
            ratios = {when: medians[f"monkey {when}"] / medians[f"{peer} {when}"] for when in ("first", "second")}
            found[name] = {**medians, **{f"ratio {when}": ratio for when, ratio in ratios.items()}}
            peak = max(peak, contest.peak)
            met = met and ratios["first"] <= bar(name) and ratios["second"] <= 1
            print(name, {key: round(value, 3) for key, value in found[name].items()}, flush=True)
    told = found.get("10k") or next(iter(found.values()))
    peers = {name: value for name, value in told.items() if not name.startswith(("monkey", "ratio"))}
    more = {"met": met and peak < MEMORY, "memory": peak, "results": found}
    report("transfer", "seconds, median", told["monkey first"], peers, told["ratio first"], **more)


if __name__ == "__main__":
    main()
