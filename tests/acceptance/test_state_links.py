"""A link in place of a directory of the agent's state: what lies behind it stays as it is, and the error names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.precious import Precious

pytestmark = pytest.mark.slow

#: Directories of the state whose entries an agent removes, moves or writes.
DIRECTORIES = ("checkpoints", "left", "abandoned", "trash", "attempts", "metrics", "unread")
#: The first attempt puts a link in the state where $1 says, to $2; the second one only works. Each leaves something
#: for the checkpoint, and a directory that goes to the trash.
JOB = """\
mkdir -p sub
echo saved > "$MONKEY_CHECKPOINT_DIR/state"
if [ "$MONKEY_ATTEMPT" = 1 ]; then
    state=$(dirname "$(dirname "$(dirname "$MONKEY_OUTPUT_DIR")")")
    mv "$state/$1" "$state/$1.before"
    ln -s "$2" "$state/$1"
    exit 1
fi
echo made > result.txt
"""
PLANTING = """\
command: [sh, job.sh, {name}, '{victim}']
parameters: {{i: [1]}}
outputs: [result.txt]
max_retries: 1
checkpoint_every: 1s
"""


def locate_state(shop: Shop) -> Path:
    """Return the state directory of the shop's agent, which has left."""
    until(lambda: not shop.processes("monkey_agent"), "the agent leaves")
    [home] = Path(shop.state).glob("monkey/*/local/*")
    return home


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_link_between_two_applies_deletes_nothing(shop: Shop, tmp_path: Path, name: str) -> None:
    shop.hurry()
    shop.spec(jobs=1)
    shop.run("apply")
    place, victim = locate_state(shop) / name, Precious(tmp_path / "victim")
    if place.exists():
        place.rename(tmp_path / "before")
    place.symlink_to(victim.root)
    shop.spec(jobs=2)
    failed = shop.run("apply", code=None)
    locate_state(shop)
    victim.check()
    assert failed.returncode == 1
    assert str(place) in failed.stderr and "XDG_STATE_HOME" in failed.stderr, failed.stderr
    place.unlink()
    shop.run("apply")
    assert shop.states() == {"succeeded": 2}


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_link_that_a_job_plants_deletes_nothing(shop: Shop, tmp_path: Path, name: str) -> None:
    victim = Precious(tmp_path / "victim")
    (shop.root / "job.sh").write_text(JOB)
    shop.hurry()
    shop.spec(PLANTING.format(name=name, victim=victim.root))
    shop.run("apply", code=None)
    place = locate_state(shop) / name
    victim.check()
    shop.spec()
    failed = shop.run("apply", code=None)
    locate_state(shop)
    victim.check()
    assert str(place) in failed.stderr, failed.stderr
