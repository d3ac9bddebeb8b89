"""One line of monkey.yaml says where the store is; what users see is the same on a directory, a bucket and a host."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.store.open import locate_url
from tests import services
from tests.acceptance.shop import Shop, until
from tests.trusting import trust

ROOT = Path(__file__).parents[2]
#: Goes on from its checkpoint, says from where, and ends once it may.
SAVER = """\
import os, pathlib, shutil, sys, time
room, enough = pathlib.Path(os.environ["MONKEY_CHECKPOINT_DIR"]), pathlib.Path(sys.argv[1])
saved = room / "step"
began = int(saved.read_text()) if saved.exists() else 0
print("began at", began, flush=True)
step = began
while not (began and enough.exists()):
    step += 1
    (room / "new").write_text(str(step))
    (room / "new").replace(saved)
    shutil.copy(saved, f"{enough}.new")
    os.replace(f"{enough}.new", f"{enough}.step")
    time.sleep(0.02)
pathlib.Path("result.txt").write_text(f"{began} {step}")
"""


def directory(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a place where no store is yet."""
    return str(tmp_path / "the store")


def s3(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a place where no store is yet, on moto's server."""
    return f"s3://{services.BUCKET}/{tmp_path.name}?endpoint={request.getfixturevalue('moto')}"


def ssh(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a place where no store is yet, on a host that is this machine."""
    request.getfixturevalue("sshd_running")
    return f"ssh://there{tmp_path}/the store"


PLACES = {"directory": directory, "s3": s3, "ssh": ssh}


@pytest.fixture(params=PLACES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a place where no store is yet."""
    return PLACES[request.param](request, tmp_path)


@pytest.fixture
def machine(
    url: str, make_shop: Callable[..., Shop], request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[str], Shop]:
    """Return a function that makes a machine of the same user, with nothing on it but keys, and the store's URL."""
    config = tempfile.mkdtemp(dir=tmp_path)

    def make(name: str) -> Shop:
        made = make_shop(name)
        made.env.update(services.KEYS, XDG_CONFIG_HOME=config)
        trust(url.partition("endpoint=")[2], env=made.env)
        if url.startswith("ssh"):
            made.env["HOME"] = str(request.getfixturevalue("sshd_running").home)
        (made.root / "monkey.yaml").write_text(f"project: shop\nstore: {url}\n")
        return made

    return make


def work(machine: Shop, url: str) -> str:
    """Run an agent there until nothing is left; return what it said."""
    agent = machine.start("agent", "--store", locate_url(url), "--project", "shop", "--idle-timeout", "0.1")
    out, err = agent.communicate(timeout=120)
    assert agent.returncode == 0, out + err
    return str(err)


@pytest.mark.slow
def test_our_example_runs_by_changing_one_line(machine: Callable[[str], Shop], url: str) -> None:
    """With the data renamed away after the upload, and by an agent on a machine that has nothing cached."""
    shop = machine("shop")
    shutil.copytree(ROOT / "specs", shop.root / "specs")
    assert "1 object uploaded" in shop.run("push").stdout
    shop.run("apply", "--detach")
    shop.kill_all()
    (shop.root / "specs/digits/data").rename(shop.root.parent / "away")
    shutil.rmtree(shop.env["XDG_CACHE_HOME"], ignore_errors=True)
    # The same name: it takes over at once what its predecessor claimed.
    work(shop, url)
    assert shop.states("digits") == {"succeeded": 36}
    best = shop.json("results", "digits")[0]
    assert best["metrics"]["test_accuracy"] > 0.95
    assert shop.json("fetch", "digits", "--top", "3", "-o", "best")["fetched"] == 3
    assert (shop.root / "best" / best["job"] / "model.npz").stat().st_size > 1000


@pytest.mark.slow
def test_a_checkpoint_and_outputs_travel_between_machines(machine: Callable[[str], Shop], url: str) -> None:
    """One machine begins a job, saves and leaves; another, which never met it, goes on; a third fetches."""
    here, enough = machine("here"), machine("desk").root.parent / "enough"
    (here.root / "saver.py").write_text(SAVER)
    here.spec(f"command: [python3, saver.py, '{enough}']\ncheckpoint_every: 1h\n", jobs=1)
    here.run("apply", "--detach")
    steps = Path(f"{enough}.step")
    # For a second: an agent that is asked to leave while it starts a job releases it as if it had not begun.
    until(lambda: steps.exists() and int(steps.read_text()) > 50, "the job saves")
    for agent in here.agents:
        os.kill(agent, signal.SIGTERM)
    until(lambda: not here.agents, "the agent leaves")
    last = int(steps.read_text())
    enough.touch()
    there = machine("there")
    work(there, url)
    (row,) = there.json("results", "sweep")
    assert row["state"] == "succeeded"
    third = machine("third")
    assert third.json("fetch", "sweep", "-o", "here")["fetched"] == 1
    began, step = map(int, (third.root / "here" / row["job"] / "result.txt").read_text().split())
    assert abs(began - last) <= 1 and step == began
    assert f"began at {began}\n" in third.run("logs", row["job"]).stdout
    assert third.json("fetch", "sweep", "-o", "here")["kept"] == 1
