"""A job's temporary files are in a directory of its own, and go with it, however it ends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until

JOB = """\
import multiprocessing, os, sys, tempfile, time
from pathlib import Path
made = Path(tempfile.mkdtemp())
(made / "large").write_bytes(bytes(1_000_000))
if sys.argv[1] == "works":
    # Its socket lies there, too, and a socket's path may have a hundred bytes.
    with multiprocessing.Manager() as manager:
        manager.dict()["a"] = 1
Path(sys.argv[2], sys.argv[1]).write_text(f"{made}\\n{os.environ['TMPDIR']}\\n")
if sys.argv[1] != "works":
    time.sleep(600)
"""


def write(shop: Shop, place: Path, how: str, more: str = "") -> None:
    """Write the spec of one job, which says below `place` where its temporary files are."""
    (shop.root / "job.py").write_text(JOB)
    shop.spec(f"command: [python3, job.py, {how}, '{place}']\nparameters: {{}}\noutputs: []\n{more}", name=how)


@pytest.fixture
def base(shop: Shop) -> Iterator[Path]:
    """Return where the shop's machine has temporary files: a short path, as everywhere."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t-") as name:
        shop.env["TMPDIR"] = name
        yield Path(name)
        shop.kill_all()


@pytest.fixture
def said(tmp_path: Path) -> Path:
    """Return where jobs say what they have."""
    made = tmp_path / "said"
    made.mkdir()
    return made


def test_nothing_is_left_of_jobs_that_are_ended_by_force(shop: Shop, base: Path, said: Path) -> None:
    shop.hurry()
    write(shop, said, "works")
    write(shop, said, "late", "timeout: 1s\ngrace: 1s\nmax_retries: 1\n")
    shop.run("apply", code=1)
    assert shop.states("works") == {"succeeded": 1} and shop.states("late") == {"failed": 1}
    for how in ("works", "late"):
        made, directory = (said / how).read_text().splitlines()
        assert Path(made).parent == Path(directory) and Path(directory).parents[1] == base
    until(lambda: not list(base.iterdir()), "the agent has left")


def test_what_a_killed_agent_left_goes_with_the_next_one(shop: Shop, base: Path, said: Path) -> None:
    shop.hurry()
    write(shop, said, "killed")
    shop.run("apply", "--detach")
    until((said / "killed").exists, "the job has its files")
    shop.kill_all()
    assert list(base.iterdir())
    shop.run("cancel", "killed")
    write(shop, said, "works")
    shop.run("apply", "specs/works.yaml")
    until(lambda: not list(base.iterdir()), "the agent has left")


def test_a_spec_may_say_where_temporary_files_are(shop: Shop, base: Path, said: Path) -> None:
    own = base / "own"
    own.mkdir()
    write(shop, said, "works", f"env: {{TMPDIR: {own}}}\n")
    shop.run("apply")
    assert (said / "works").read_text().splitlines()[1] == str(own)
