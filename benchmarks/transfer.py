"""How fast a dataset gets into a store: ours beside Debian's rclone and rsync, DVC's own push, and `aws s3 sync`.

Bars, ratios of medians. On a directory, to rclone: 10,000 files of 10 KB at most 0.6, 100,000 of 1 KB at most 0.3, one
of 2 GB at most 1, and each of them at most 1 the second time, when all is there; in a DVC repository faster than
`dvc push`, both times; never 300 MB of memory. By SSH, 10,000 files of 10 KB: at most 2, to `rsync -a`, and no round
trip a file the second time. On S3 (moto's server for all), 1,000 files of 10 KB: ahead of `aws s3 sync` and `dvc push`
in seconds and in requests. The ratio that is reported is that of 10,000 files in a directory. Arguments choose among
10k, dvc, 100k, 2GB, ssh, s3.

All are whole processes, with the same cache state: sources in the page cache, nothing of others waiting for the disk,
destinations new each round, no hashes known the first time (but DVC's, where it is DVC that tracks the data). Ours is
`monkey push --path`. It alone is durable when it returns; rclone (its usual options: 4 transfers, 8 checkers) verifies
hashes after its copies, and syncs nothing.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import report
from _contest import Contest, DvcContest, fill

ROUNDS = 5
#: Name to the number of files, the bytes of each, and the bar of the first time.
SHAPES = {
    "10k": (10_000, 10_000, 0.6),
    "dvc": (10_000, 10_000, 1.0),
    "100k": (100_000, 1_000, 0.3),
    "2GB": (1, 2_000_000_000, 1.0),
    "ssh": (10_000, 10_000, 2.0),
    "s3": (1_000, 10_000, 1.0),
}
#: Bytes of memory that ours may take.
MEMORY = 300_000_000

#: Round trips by SSH, when all is there, from which on they count as one a file.
TRIPS = 100


def turns(contest: Contest) -> dict[str, float]:
    """Return the medians of all contestants, both times: seconds, and requests where they are counted."""
    found: dict[str, list[float]] = {}
    order = list(contest.contestants)
    for at in range(ROUNDS):
        for who in order[at % len(order) :] + order[: at % len(order)]:
            for when in ("first", "second"):
                contest.counted()
                found.setdefault(f"{who} {when}", []).append(getattr(contest, f"{who}_{when}")())
                if (count := contest.counted()) is not None:
                    found.setdefault(f"{who} {when} requests", []).append(count)
    return {name: statistics.median(values) for name, values in found.items()}


def contests(root: Path, chosen: Sequence[str]) -> Iterator[tuple[str, Contest]]:
    """Yield a name and a contest, one after the other; nothing of it is left afterwards."""
    for name in chosen:
        files, size, _ = SHAPES[name]
        if name not in ("dvc", "s3") and not shutil.which("rsync" if name == "ssh" else "rclone"):
            print(f"{name} is left out: `invoke services` installs its peer", flush=True)
            continue
        with tempfile.TemporaryDirectory(dir=root) as home:
            data = fill(Path(home, "data"), files, size)
            yield from ((name, contest) for contest in _contest(name, Path(home), data))


def _contest(name: str, home: Path, data: Path) -> Iterator[Contest]:
    if name == "s3":
        from _remote import S3Contest, moto

        with moto() as endpoint:
            yield S3Contest(home, data, endpoint)
    elif name == "ssh":
        from _remote import SshContest, ssh_server

        with ssh_server(home / "ssh") as server:
            yield SshContest(home, data, server)
    else:
        yield DvcContest(home, data) if name == "dvc" else Contest(home, data)


def judged(name: str, contest: Contest, medians: Mapping[str, float]) -> dict[str, Any]:
    """Return what is reported of one contest: its medians, the ratios to each peer, whether the bars are met."""
    ratios, met = {}, True
    for peer in contest.contestants[1:]:
        for when, most in (("first", SHAPES[name][2]), ("second", 2.0 if name == "ssh" else 1.0)):
            for what in ("", " requests"):
                if f"{peer} {when}{what}" in medians:
                    ratio = medians[f"monkey {when}{what}"] / medians[f"{peer} {when}{what}"]
                    ratios[f"ratio to {peer} {when}{what}"] = ratio
                    met = met and ratio <= most
    if name == "ssh":
        trips = contest.round_trips()  # type: ignore[attr-defined]  # this one has it
        ratios |= {f"{who} round trips": count for who, count in trips.items()}
        met = met and trips["monkey"] < TRIPS
    return {**medians, **ratios, "memory": contest.peak, "met": met and contest.peak < MEMORY}


def main() -> None:
    """Measure and report."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="monkey-transfer-") as root:
        for name, contest in contests(Path(root), sys.argv[1:] or list(SHAPES)):
            found[name] = judged(name, contest, turns(contest))
            print(name, {key: round(value, 3) for key, value in found[name].items()}, flush=True)
    told = found.get("10k") or next(iter(found.values()))
    peers = {name: value for name, value in told.items() if not name.startswith(("monkey", "ratio", "memory", "met"))}
    ratio = next(value for name, value in told.items() if name.startswith("ratio"))
    met = all(one["met"] for one in found.values())
    report("transfer", "seconds, median", told["monkey first"], peers, ratio, met=met, results=found)


if __name__ == "__main__":
    main()
