"""monkey on a Mac, which is played here: a sweep, kills and a takeover, a pause, the page, and what `doctor` says."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.data import contents, fill
from tests.acceptance.mac_shop import MacShop
from tests.acceptance.shop import until
from tests.played_mac.machine import PlayedMac

pytestmark = [pytest.mark.slow, pytest.mark.needs("mount"), pytest.mark.needs("mypy")]

SLOTS = os.cpu_count() or 1
#: Sends a metric by each of the ways that there are, reads its dataset, and leaves an output.
TRAIN = """\
import os, pathlib, socket, sys
import monkey

assert sys.platform == "darwin" and not hasattr(socket, "SOCK_NONBLOCK"), "this is no Mac"
data = sorted(pathlib.Path(os.environ["MONKEY_DATASET_D"]).glob("*/*.bin"))
i = int(sys.argv[1])
unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
unix.connect(os.environ["MONKEY_METRICS_SOCKET"])
host, port = os.environ["MONKEY_METRICS_UDP"].split(":")
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for step in range(1, 21):
    monkey.log({"loss": i / step}, step=step)
    unix.send(f"train acc={step / 20},step={step}i".encode())
    udp.sendto(f"speed value={step}i,step={step}i".encode(), (host, int(port)))
pathlib.Path("model.txt").write_bytes(b"".join(path.read_bytes() for path in data))
print("read", len(data), "files")
"""
#: Saves a checkpoint all the time, and goes on from it.
SAVER = """\
import json, os, sys, time

ledger, state = sys.argv[1], os.environ["MONKEY_CHECKPOINT_DIR"] + "/state.json"
done = json.load(open(state))["step"] if os.path.exists(state) else 0
with open(ledger + "/saver", "a") as file:
    file.write(f"{os.environ['MONKEY_ATTEMPT']} {done}\\n")
while not (done and os.path.exists(ledger + "/enough")):
    done += 1
    with open(state + ".new", "w") as file:
        json.dump({"step": done}, file)
    os.rename(state + ".new", state)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def mac(tmp_path_factory: pytest.TempPathFactory) -> PlayedMac:
    """Make a Mac for all tests here."""
    return PlayedMac(tmp_path_factory.mktemp("mac") / "mac")


@pytest.fixture
def shop(mac: PlayedMac, tmp_path: Path) -> Iterator[MacShop]:
    """Return a project on it, below a /tmp that is a link; nothing of it outlives the test."""
    private, tmp = tmp_path / "private", Path(tempfile.mkdtemp())
    private.mkdir()
    (tmp_path / "tmp").symlink_to(private)
    made = MacShop(tmp_path / "tmp" / "shop", mac, tmp)
    made.hurry()
    yield made
    made.kill_all()
    shutil.rmtree(tmp)


def test_a_sweep_has_its_dataset_metrics_and_outputs_and_the_page_shows_it(shop: MacShop) -> None:
    (shop.root / "train.py").write_text(TRAIN)
    fill(shop.root / "data", 3000)
    shop.spec(
        "command: [python3, train.py, '{i}']\ndatasets: {d: data}\noutputs: [model.txt]\n"
        "metric: {name: loss, goal: minimize}\nresources: {memory: 1GiB}\n"
    )
    planned = shop.run("plan").stdout
    assert "nothing ends a job that takes more than it asked for" in planned
    shop.run("apply")
    assert shop.states() == {"succeeded": 4}
    for row in shop.json("metrics", "sweep"):
        metrics = {name: of["values"] for name, of in row["metrics"].items()}
        assert len(metrics["loss"]) == 20 and metrics["speed"] == list(range(1, 21))
        assert metrics["train/acc"] == [step / 20 for step in range(1, 21)]
    shop.run("fetch", "sweep", "-o", "fetched")
    models = list((shop.root / "fetched").rglob("model.txt"))
    data = contents(shop.root / "data")
    assert [path.read_bytes() for path in models] == [b"".join(data[name] for name in sorted(data))] * 4
    assert "all as recorded" in shop.run("verify", "sweep").stdout
    assert "nothing to do" in shop.run("apply").stdout
    assert "All is well" in shop.run("doctor").stdout
    facts = json.dumps(shop.json("info", "sweep/" + shop.json("list", "jobs", "sweep")[0]["job"]))
    assert "macOS 14.5" in facts and "Darwin 23.5.0" in facts
    check_page(shop)
    isolated = [line for line in shop.played if " -I -S " in line]
    for helper in ("supervisor.py", "hash_worker.py"):
        assert any(helper in line for line in isolated), f"no {helper} was played"


def check_page(shop: MacShop) -> None:
    """Open the page, and ask it for the sweep."""
    page = shop.start("web", "--no-browser")
    address, _, token = page.stdout.readline().strip().partition("#token=")
    with urllib.request.urlopen(address, timeout=60) as answer:
        assert b"<html" in answer.read()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    there = {"Origin": address.rstrip("/"), "Content-Type": "application/json"}
    login = urllib.request.Request(f"{address}api/login", json.dumps({"token": token}).encode(), there)
    key = json.loads(opener.open(login, timeout=60).read())["key"]
    asked = urllib.request.Request(f"{address}api/sweep/sweep", headers={"X-Monkey-Key": key})
    assert json.loads(opener.open(asked, timeout=60).read())
    page.terminate()
    page.communicate(timeout=60)


def test_after_kills_of_agent_and_supervisor_nothing_runs_twice_at_once(shop: MacShop) -> None:
    shop.spec(jobs=6, seconds=0.2)
    shop.ledger.hold()
    shop.run("apply", "--detach")
    before = 0
    for victims in (["monkey_agent.command_line"], ["supervisor.py"], ["monkey_agent"]):
        # Each has written to the ledger, too: what comes there later is another's.
        wanted = before + min(2, SLOTS)
        until(lambda wanted=wanted: len(shop.jobs) >= min(2, SLOTS) and shop.ledger.executions >= wanted, "jobs run")
        first, before = shop.jobs, shop.ledger.executions
        shop.kill(shop.processes(*victims))
        shop.run("apply", "--detach")
        until(lambda before=before: shop.ledger.executions > before, "jobs run again")
        assert not set(first) & set(shop.jobs), "earlier jobs run beside later ones"
    shop.ledger.release()
    shop.run("apply")
    assert shop.states() == {"succeeded": 6} and not shop.ledger.overlaps
    listed = shop.json("list", "jobs", "sweep")
    assert all(job["outputs"]["result.txt"] in shop.ledger.digests[job["job"]] for job in listed)
    until(lambda: not shop.processes(), "the agent leaves, and nothing stays behind")


def test_an_agent_that_is_killed_takes_its_jobs_along(shop: MacShop) -> None:
    shop.spec(jobs=2, seconds=600)
    shop.run("apply", "--detach")
    until(lambda: shop.jobs, "jobs run")
    shop.kill(shop.agents)
    until(lambda: not shop.processes(), "neither a job nor the supervisor is left")


def test_a_paused_job_goes_on_from_its_checkpoint(shop: MacShop) -> None:
    (shop.root / "saver.py").write_text(SAVER)
    ledger = shop.ledger.directory
    shop.spec(
        f"command: [python3, saver.py, '{ledger}']\nparameters: {{}}\noutputs: []\ncheckpoint_every: 1s\n",
    )
    shop.run("apply", "--detach")
    stored = ".monkey/store/projects/shop/jobs/*/checkpoints/*/*"
    until(lambda: any(shop.root.glob(stored)), "a checkpoint is in the store while the job runs")
    shop.run("pause", "sweep")
    until(lambda: shop.states() == {"paused": 1}, "it is paused")
    assert not shop.processes("saver.py")
    shop.run("resume", "sweep")
    (ledger / "enough").touch()
    shop.run("apply")
    assert shop.states() == {"succeeded": 1}
    begins = [line.split() for line in (ledger / "saver").read_text().splitlines()]
    assert [int(attempt) for attempt, _ in begins] == [1, 2] and int(begins[1][1]) > 0


def test_more_jobs_run_at_once_than_a_process_there_may_have_files(shop: MacShop) -> None:
    hold = shop.ledger.directory / "hold"
    command = f"touch {shop.ledger.directory}/{{i}}.on; while test -e {hold}; do sleep 0.5; done"
    shop.spec(f"command: [sh, -c, '{command}']\noutputs: []\nresources: {{cpus: 0.001}}\n", jobs=150)
    shop.ledger.hold()
    shop.run("apply", "--detach")
    until(lambda: len(list(shop.ledger.directory.glob("*.on"))) == 150, "all jobs run at once")
    shop.ledger.release()
    shop.run("apply")
    assert shop.states() == {"succeeded": 150}
