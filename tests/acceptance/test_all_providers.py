"""One sweep on this machine, a host by SSH, a Slurm and a Kubernetes at once: one queue, and one table of results.

MONKEY_LONG=1 asks for it: it starts all of them for real, with one bucket that all reach.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import services
from tests.acceptance.ledger import Ledger, Line
from tests.acceptance.shop import Shop, until
from tests.acceptance.site import left_on
from tests.hosts import Lab
from tests.kubernetes.local_kubernetes import ADMIN
from tests.kubernetes.nodes import PYTHON, Nodes, run_nodes
from tests.slurm.cluster import Cluster, run_cluster
from tests.trusting import trust

LONG = bool(os.environ.get("MONKEY_LONG"))
pytestmark = [
    *(pytest.mark.slow, pytest.mark.needs("hosts"), pytest.mark.needs("kubernetes")),
    *(pytest.mark.needs("moto"), pytest.mark.needs("pulumi")),
    pytest.mark.skipif(not LONG, reason="MONKEY_LONG=1: starts a Slurm and a Kubernetes for one sweep, two minutes"),
]
FLEETS = ("local", "lab", "slurm", "kube")
JOBS = 16


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with (
        tempfile.TemporaryDirectory(prefix="mk8-", dir="/tmp", ignore_cleanup_errors=True) as home,
        run_nodes(Path(home)) as made,
    ):
        made.cluster.kubectl("create", "namespace", "mixed")
        yield made


@pytest.fixture
def cluster(nodes: Nodes, lab: Lab) -> Iterator[Cluster]:
    with run_cluster(lab) as made:
        yield made


@pytest.fixture
def place() -> Iterator[Path]:
    """Return where the ledger is on each machine, by the same name: pods have this machine's."""
    made = Path(tempfile.mkdtemp(prefix="monkey-mixed-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def test_one_sweep_runs_on_four_kinds_of_machines_at_once(
    nodes: Nodes, lab: Lab, cluster: Cluster, make_shop: Callable[..., Shop], place: Path
) -> None:
    shop, (host,) = make_shop(), lab("h1")
    machines = (host, *cluster.nodes)
    before = {machine.name: left_on(machine) for machine in machines}
    ledgers = {"here": Ledger(place)}
    ledgers |= {machine.name: Ledger(machine.root / place.relative_to("/")) for machine in machines}
    with services.moto(f"{lab.network}.1") as endpoint:
        describe(shop, lab, nodes, endpoint, place)
        shop.spec(
            f"provider: [{', '.join(FLEETS)}]\ncommand: [python3, job.py, '{place}', '0.05', '{{i}}']\n", jobs=JOBS
        )
        for ledger in ledgers.values():
            ledger.hold()
            # Whoever writes first would own it: here that is root, or a pod's user.
            (ledger.directory / "ledger").touch()
            (ledger.directory / "ledger").chmod(0o666)
        plan = shop.json("plan")
        assert [fleet["fleet"] for fleet in plan["fleets"]] == list(FLEETS)
        shop.run("apply", "-y", "--detach", patience=300)
        # Each has room for one job, and holds it: so each has begun one.
        try:
            until(lambda: count(ledgers) == len(FLEETS), "all begin", 150, step=0.2)
        except AssertionError as exc:
            begun = {name: ledger.executions for name, ledger in ledgers.items()}
            told = [shop.run(*words, code=None).stdout for words in (("status",), ("list", "instances"), ("audit",))]
            raise AssertionError("\n".join([str(exc), str(begun), *told])) from exc
        shown = shop.json("list", "instances")
        assert {row["fleet"] for row in shown if row["state"] == "alive"} == set(FLEETS), shown
        assert shop.states() == {"running": 4, "queued": JOBS - 4}
        for ledger in ledgers.values():
            ledger.release()
        until(lambda: shop.states() == {"succeeded": JOBS}, "all end", 120, step=1.0)
        check_once(shop, ledgers)
        shop.run("destroy", "-y", patience=300)
    assert not cluster.queue() and not nodes.cluster.count("mixed", "jobs,pods")
    for machine in machines:
        machine.within("rm", "-rf", str(place))
        until(lambda at=machine: left_on(at) == before[at.name], f"nothing is left on {machine.name}", 15, step=1.0)


def describe(shop: Shop, lab: Lab, nodes: Nodes, endpoint: str, place: Path) -> None:
    """Write monkey.yaml: four providers with room for one job each, and a bucket that all reach."""
    usual = {"max_slots": 1, "idle_timeout": "60s"}
    pilot = {**usual, "pilots": 1, "memory": "300MiB"}
    seen = {"name": "ledger", "hostPath": {"path": str(place)}}
    mount = {"name": "agent", "volumeMounts": [{"name": "ledger", "mountPath": str(place)}]}
    pod = {"hostNetwork": True, "volumes": [seen], "containers": [mount]}
    told = {
        "project": "shop",
        "store": f"s3://{services.BUCKET}/mixed?endpoint={endpoint}&region=us-east-1",
        "providers": {
            "local": {"type": "local", **usual},
            "lab": {"type": "ssh", "hosts": ["h1"], **usual},
            "slurm": {"type": "slurm", "login": "twin1", "time": "10m", **pilot},
            "kube": {
                "type": "kubernetes",
                "context": ADMIN,
                "namespace": "mixed",
                "image": PYTHON,
                "pod": pod,
                **pilot,
            },
        },
    }
    (shop.root / "monkey.yaml").write_text(json.dumps(told))
    shop.env |= {**nodes.cluster.environment, **services.KEYS, "MONKEY_SSH_CONFIG": str(lab.config)}
    shop.env["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
    shop.env["PATH"] = f"{services.pulumi_directory()}{os.pathsep}{shop.env['PATH']}"
    trust(endpoint, env=shop.env)


def count(ledgers: dict[str, Ledger]) -> int:
    return sum(ledger.executions for ledger in ledgers.values())


def check_once(shop: Shop, ledgers: dict[str, Ledger]) -> None:
    """Have each job run once, on whatever machine, by the ledgers; and stand once in the one table."""
    begun = list(itertools.chain.from_iterable(ledger.begins.elements() for ledger in ledgers.values()))
    assert len(begun) == len(set(begun)) == JOBS, begun
    rows = shop.json("results", "sweep")
    assert {row["job"] for row in rows} == set(begun) and len(rows) == JOBS
    assert {row["state"] for row in rows} == {"succeeded"}
    ends: dict[str, Line] = {line.job: line for each in ledgers.values() for line in each.lines if line.what == "end"}
    jobs = shop.json("list", "jobs", "sweep")
    assert all(row["outputs"]["result.txt"] == ends[row["job"]].sha256 for row in jobs), "what each wrote, is there"
    print({name: ledger.executions for name, ledger in ledgers.items()})
    assert ledgers["here"].executions >= 2 and ledgers["h1"].executions
    assert ledgers["twin1"].executions + ledgers["twin2"].executions
