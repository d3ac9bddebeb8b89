"""10,000 signed entries of a sweep's log: checked the first time, and again by the same process.

Bars: at most 2 s the first time, and 0.1 s again. The ratio is the first time over what the bare Ed25519 checks take.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from _common import report

from monkey.signing.entry_signers import load_user_signers
from monkey.signing.keys.user_key import UserKeyFile
from monkey.signing.signed_entry import EntryPlace, hash_entries

ENTRIES, ROUNDS = 10_000, 5
#: An order with a text, as long as most orders are; revisions are longer, and few.
REASON = "a reason of the usual length, which a person gives"


def make_log(home: Path) -> list[tuple[EntryPlace, bytes]]:
    """Return a log in which each entry names the one before."""
    signers, before, log = load_user_signers(home, {}), "", []
    for number in range(1, ENTRIES + 1):
        place = EntryPlace("0123456789abcdef", "digits", "sweep", number, before)
        body = {"kind": "pause", "nonce": f"{number:016x}", "reason": REASON}
        entry = signers.sign(place, json.dumps(body, separators=(",", ":")).encode())
        log.append((place, entry))
        before = hash_entries(before, entry)
    return log


def measure_checks(home: Path, log: list[tuple[EntryPlace, bytes]]) -> tuple[float, float]:
    """Return the seconds of all checks by a new process's state: the first time, and again."""
    signers, taken = load_user_signers(home, {}), []
    for _ in range(2):
        begun = time.perf_counter()
        for place, entry in log:
            signers.check(place, entry)
        taken.append(time.perf_counter() - begun)
    return taken[0], taken[1]


def measure_bare(home: Path) -> float:
    """Return the seconds of as many Ed25519 checks alone."""
    key = UserKeyFile(home, {}).open()
    public, made = key.public, key.sign(b"x" * 100)
    begun = time.perf_counter()
    for _ in range(ENTRIES):
        public.has_signed(b"x" * 100, made)
    return time.perf_counter() - begun


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        begun = time.perf_counter()
        log = make_log(home)
        print(f"  signing: {time.perf_counter() - begun:.2f} s")
        rounds = [(*measure_checks(home, log), measure_bare(home)) for _ in range(ROUNDS)]
    first, again, bare = (statistics.median(each) for each in zip(*rounds, strict=True))
    print(f"  first: {first:.3f} s (≤ 2), again: {again:.3f} s (≤ 0.1), bare Ed25519: {bare:.3f} s")
    report("signatures", "seconds, median", first, {"again": again, "bare Ed25519": bare}, first / bare)


if __name__ == "__main__":
    main()
