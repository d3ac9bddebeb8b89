"""Logs in the store are packed, and no reader sees a difference; what a stranger puts in their place is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

#: Prints a progress bar of 6 MB, and says when that is done.
BAR = """\
for i in range(90_000):
    done = i * 30 // 90_000
    print(f"\\r{i:6d}/90000 |{'#' * done}{'.' * (30 - done)}| loss 0.{i * 7919 % 10_000:04d}", end="")
print(flush=True)
"""
LOG = b"".join(
    b"\r%6d/90000 |%s%s| loss 0.%04d"
    % (i, b"#" * (i * 30 // 90_000), b"." * (30 - i * 30 // 90_000), i * 7919 % 10_000)
    for i in range(90_000)
)


def write_bar(shop: Shop, more: str = "") -> None:
    """Write a job that prints the bar, then runs `more`."""
    (shop.root / "bar.py").write_text(BAR + more)
    shop.spec("command: [python3, bar.py]\nparameters: {}\noutputs: []\n")


def read_log(shop: Shop, *what: str) -> bytes:
    """Return what `monkey logs` writes to a pipe."""
    with shop.start("logs", *what, text=False) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    return bytes(out)


def weigh(directory: Path) -> int:
    """Return the bytes of the files in a directory."""
    return sum(path.stat().st_size for path in directory.iterdir())


def test_a_progress_bar_is_packed_and_a_stranger_s_segment_is_told(shop: Shop) -> None:
    write_bar(shop)
    shop.run("apply")
    (job,) = [one["job"] for one in shop.json("list", "jobs")]
    log = shop.root / f".monkey/store/projects/shop/jobs/{job}/out/00000001/log"
    assert weigh(log) < 0.1 * len(LOG)
    assert read_log(shop, job) == LOG + b"\n"
    first, second = sorted(log.iterdir())
    honest, rest = first.read_bytes(), gzip.decompress(second.read_bytes())
    key = f"projects/shop/jobs/{job}/out/00000001/log/000000"
    for hostile, why in (
        (gzip.compress(bytes(64 << 20)), "too large"),
        (honest[: len(honest) // 2], "cut short"),
        (honest[:-8] + bytes(8), "broken"),
        (honest + b"more", "cut short"),
        (honest[:20] + bytes(100) + honest[120:], "broken"),
    ):
        first.chmod(0o644)
        first.write_bytes(hostile)
        told = read_log(shop, job)
        assert told.endswith(rest) and len(told) < len(rest) + 500
        assert key.encode() in told and why.encode() in told, told[:500]
    first.write_bytes(LOG[: len(LOG) - len(rest) + 1])  # as older versions wrote it
    assert read_log(shop, job) == LOG + b"\n"


def test_what_a_job_printed_whose_agent_was_killed_is_packed_too(shop: Shop) -> None:
    write_bar(shop, "import time\ntime.sleep(1000)\n")
    shop.run("apply", "--detach")
    with shop.start("logs", "-f", "sweep", text=False, bufsize=0) as follower:
        assert follower.stdout is not None
        got = bytearray()
        while len(got) <= len(LOG):
            data = follower.stdout.read(1 << 20)
            assert data
            got += data
        follower.kill()
        follower.communicate()
    assert got == LOG + b"\n"
    shop.kill_all()
    shipped = shop.root / ".monkey/store/projects/shop/shipments"
    segments = [path for path in shipped.rglob("*") if path.is_file()]
    assert segments and sum(path.stat().st_size for path in segments) < 0.15 * len(LOG)
    assert read_log(shop, "sweep") == LOG + b"\n"
    # One that is torn costs what it had, and no reader ends by it.
    segments[0].chmod(0o644)
    segments[0].write_bytes(segments[0].read_bytes()[:-9])
    shop.run("logs", "sweep")
    assert json.loads((shop.root / ".monkey/store/format").read_text())["format"] == 3
    until(lambda: not shop.processes(), "nothing is left")
