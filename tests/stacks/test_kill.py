"""kill -9 of whoever applies, of Pulumi and of its plugins, again and again: the next one makes everything whole."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from monkey_stacks.engine.engine_outcome import StateResource
from tests.acceptance.shop import until
from tests.stacks.desk import HELD, Desk, Sheet, leftovers

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("MONKEY_LONG"))
KILLS = 20 if LONG else 6
#: Kills between two looks at whether everything converges.
STRETCH = 1 if LONG else 3
#: Seconds within which a run is killed: as long as one takes here where nothing else runs.
SPAN = 5.0
#: Seconds of that from the first step to the end.
WORK = 0.7


def kill_all(desk: Desk, process: subprocess.Popen[str]) -> None:
    """kill -9 of everything at once: the process, the leash, Pulumi and its plugins."""
    for pid in [process.pid, *(int(line.split()[0]) for line in leftovers(desk.base))]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()


def some(dice: random.Random) -> list[Sheet]:
    """Return another wish each time: papers come and go, change their text and their place."""
    chosen = dice.sample("abcd", dice.randrange(1, 5))
    return [
        Sheet(name, f"text {dice.randrange(3)}", file=f"{name}{dice.randrange(2)}", seconds=0.3)
        for name in sorted(chosen)
    ]


def test_converges_after_kills_at_random_moments(desk: Desk) -> None:
    desk.up(Sheet("a", "text 0", file="a0", seconds=0.3))
    seed = random.SystemRandom().randrange(10_000)
    print(f"seed {seed}")
    dice, cut, tries = random.Random(seed), 0, 0
    # How many end before they are killed depends on the machine; those are not counted.
    while cut < KILLS:
        tries += 1
        assert tries <= 5 * KILLS, "they end before they are killed: nothing was shown"
        steps = sum(desk.done.values())
        process = desk.start(*some(dice))
        if dice.random() < 0.7:
            # Most in the middle of the work: the way there is long, and there is nothing to cut.
            with contextlib.suppress(AssertionError):
                until(lambda: sum(desk.done.values()) > steps or process.poll() is not None, "work begins", 20)  # noqa: B023
            time.sleep(dice.uniform(0, WORK))
        else:
            time.sleep(dice.uniform(0, SPAN))
        ended = process.poll() is not None
        kill_all(desk, process)
        if ended:
            continue
        cut += 1
        if cut % STRETCH == 0:
            check(desk, some(dice))
    print(f"{cut} cut of {tries} begun")
    desk.destroy()
    assert desk.written == {}
    assert not leftovers(desk.base)


def check(desk: Desk, wanted: list[Sheet]) -> None:
    """Apply without a kill, and hold what lies there against what is wanted and what is known."""
    began = time.monotonic()
    desk.up(*wanted).check()
    print(f"converged in {time.monotonic() - began:.1f} s, {len(desk.done)} kinds of steps so far")
    assert desk.written == {sheet.file: sheet.text for sheet in wanted}
    known: tuple[StateResource, ...] = desk.run(lambda engine: engine.resources())
    assert {Path(each.id).name for each in known} == {sheet.file for sheet in wanted}
    assert not any(each.interrupted for each in known)


def test_nothing_of_pulumi_outlives_whoever_wanted_it(desk: Desk) -> None:
    process = desk.start(Sheet("a", "text", seconds=HELD))
    until(lambda: desk.done["create a"], "work begins")
    assert any("pulumi.dynamic" in line for line in leftovers(desk.base))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not leftovers(desk.base), "all of it ends", 20)
    assert desk.written == {"a": "te"}
    began = time.monotonic()
    desk.up(Sheet("a", "text")).check()
    assert time.monotonic() - began < 60, "it waited for a dead one's lease"
    assert desk.written == {"a": "text"}
    assert desk.done == {"create a": 1, "update a": 1}


def test_what_was_being_made_when_all_died_is_taken_away_where_nobody_wants_it(desk: Desk) -> None:
    process = desk.start(Sheet("a", "text", seconds=HELD))
    until(lambda: desk.done["create a"], "work begins")
    kill_all(desk, process)
    assert desk.written == {"a": "te"}
    [known] = desk.run(lambda engine: engine.resources())
    assert (known.name, known.interrupted) == ("a", True)
    desk.destroy()
    assert desk.written == {}
    assert desk.done["delete a"] == 1
