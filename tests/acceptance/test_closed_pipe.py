"""`apply` into a pipe whose reader is gone: what is decided is done, whoever reads; what is asked is not agreed to."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from monkey.cli.exit_codes import BROKEN_PIPE
from tests.acceptance.shop import MONKEY, PATIENCE, Shop, until


@pytest.fixture
def unread() -> Iterator[int]:
    """Return the end to write to of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@contextmanager
def open_terminal() -> Iterator[tuple[int, int]]:
    """Open a terminal; ours is the end at which a person sits."""
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stdout-and-stderr"])
def test_what_is_applied_is_applied_though_nobody_reads(shop: Shop, unread: int, both: bool) -> None:
    shop.spec(jobs=2)
    apply = shop.start("apply", "--detach", stdout=unread, stderr=unread if both else subprocess.PIPE)
    said = apply.communicate(timeout=PATIENCE)[1]
    assert (apply.returncode, said) == (0, None if both else "")
    until(lambda: shop.states() == {"succeeded": 2}, "its jobs were queued, and an agent was started")


@pytest.mark.parametrize("reader", ["| head -1", "2>&1 | sed 1q"])
def test_a_reader_who_leaves_ends_the_watch_and_not_the_jobs(shop: Shop, reader: str) -> None:
    shop.ledger.hold()
    shop.spec(jobs=2)
    line = f'"$@" apply {reader}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *MONKEY],
        cwd=shop.root,
        env=shop.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (BROKEN_PIPE, "sweep (specs/sweep.yaml)\n")
    if "2>&1" not in reader:
        assert done.stderr.startswith("\nDetached: sweep goes on without this terminal.\n")
    until(lambda: shop.states() == {"running": 2}, "its jobs run")
    shop.ledger.release()
    until(lambda: shop.states() == {"succeeded": 2}, "its jobs go on")


def test_a_question_that_nobody_reads_is_not_agreed_to(shop: Shop, unread: int) -> None:
    shop.ledger.hold()
    shop.spec(jobs=1)
    shop.run("apply", "--detach")
    until(lambda: shop.states() == {"running": 1}, "its job runs")
    shop.spec(jobs=1, text="parameters: {i: [7]}\n")
    said = "applying would stop 1 running job that is no longer wanted"
    with open_terminal() as (ours, theirs):
        os.write(ours, b"y\n")
        refused = shop.start("apply", "--detach", stdin=theirs, stdout=unread)
        assert refused.communicate(timeout=PATIENCE)[1] == f"error: {said}\nhint: --yes agrees to that\n"
    assert refused.returncode == 1 and shop.json("plan")["sweeps"][0]["revision"] == 1
    with open_terminal() as (ours, theirs):
        os.write(ours, b"y\n")
        asked = shop.start("apply", "--detach", stdin=theirs, stdout=unread, stderr=theirs)
        assert asked.wait(PATIENCE) == 0
        assert b"Stop 1 running job that is no longer wanted? [y/N]" in os.read(ours, 10_000), (
            "it is asked where one reads"
        )
    assert shop.json("plan")["sweeps"][0]["revision"] == 2
