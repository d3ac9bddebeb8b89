"""What the messages advise helps: it is read off the screen, done, and the sweep comes to its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.data import SPEC, fill, objects
from tests.acceptance.shop import Shop

pytestmark = pytest.mark.slow

#: Verbs that steer or mend, as a message advises them.
ADVISED = re.compile(r"`monkey ((?:push|retry|resume)[^`]*)`")


def advised(said: str) -> list[str]:
    """Return what a message says to do, in its order; of a verb, what is said of it last."""
    return list({way.split()[0]: way for way in ADVISED.findall(said)}.values())


def test_a_sweep_that_failed_fast_comes_to_its_end_by_what_is_advised(shop: Shop) -> None:
    switch = shop.root.parent / "works"
    # More than can fail, two or so at once, before the first of them is acted on.
    command = f"['sh', '-c', 'test -e {switch} || {{{{ sleep 1; exit 1; }}}}', '{{i}}']"
    shop.spec(f"command: {command}\nfail_fast: true\noutputs: []\n", jobs=40)
    said = [shop.run("apply", code=1).stdout, shop.run("status").stdout, shop.run("apply", code=1).stdout]
    assert "cancelled" in shop.states() and "fail_fast" in said[0]
    said += [shop.run(verb, "sweep").stdout for verb in ("pause", "cancel")]
    said.append(shop.run("plan").stdout)
    assert [advised(text) for text in said] == [["retry sweep"]] * 6
    switch.touch()
    shop.run(*advised(said[0])[0].split())
    shop.run("status", "-w", "sweep")
    assert shop.states() == {"succeeded": 40}


def test_jobs_whose_data_rotted_come_to_their_end_by_what_is_advised(shop: Shop, store: Path) -> None:
    fill(shop.root / "data", 3)
    shop.spec(SPEC, jobs=2)
    shop.run("push")
    for oid, path in objects(store).items():
        if not oid.endswith(".dir"):
            path.write_bytes(b"\0" * path.stat().st_size)
    said = [shop.run("apply", "--yes", code=1).stdout, shop.run("apply", code=1).stdout, shop.run("status").stdout]
    said += [shop.run("plan").stdout, shop.run("logs", "sweep").stderr]
    assert [[way.split()[0] for way in advised(text)] for text in said] == [["push", "retry"]] * 5
    for way in advised(said[1]):
        shop.run(*way.split())
    shop.run("status", "-w", "sweep")
    assert shop.states() == {"succeeded": 2}
