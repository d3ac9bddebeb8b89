"""Objects whose size a stranger chose (harm-sparse-object): they are named, and stop no verb, agent or other sweep."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

#: Bytes of the hole, and of the memory that a verb may have.
HOLE, MEMORY = 60 << 30, 4 << 30
VERBS = "status;plan;list sweeps;list jobs sweep;results sweep;logs JOB;info JOB;audit;verify sweep;doctor"


def make_hole(shop: Shop, key: str) -> None:
    """Put an object into the project that is large, and takes no room."""
    path = shop.root / ".monkey" / "store" / "projects" / "shop" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, HOLE)


def limit_memory() -> None:
    """Let this process, and what it starts, have little memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def ask(shop: Shop, *arguments: str) -> tuple[int, str]:
    """Run a verb with little memory; return its exit code and all that it printed."""
    process = shop.start(*arguments, preexec_fn=limit_memory)
    out, err = process.communicate(timeout=120)
    assert "out of memory" not in err and "Traceback" not in err, f"{arguments}: {err}"
    return process.returncode, out + err


def test_a_sparse_object_in_a_sweeps_log_stops_no_verb(shop: Shop) -> None:
    shop.hurry()
    shop.spec(jobs=2)
    shop.run("apply")
    until(lambda: not shop.agents, "the agent leaves")
    (job, *_) = [one["job"] for one in shop.json("list", "jobs")]
    make_hole(shop, "sweeps/sweep/00000002")
    told = {verb: ask(shop, *verb.replace("JOB", job).split()) for verb in VERBS.split(";")}
    # The doctor's code says that not all is well.
    assert {verb: code for verb, (code, _) in told.items() if code} == {"doctor": 1}, told
    for verb in ("status", "doctor", "list sweeps"):
        said = told[verb][1]
        assert "sweeps/sweep/00000002" in said and "too large" in said and f"{HOLE:,}" in said, said
    shop.spec(jobs=3)
    shop.run("apply")
    assert shop.ledger.executions == 3


def test_sparse_objects_everywhere_keep_no_agent_from_an_honest_sweep(shop: Shop) -> None:
    shop.hurry()
    shop.spec(jobs=1, name="first")
    shop.run("apply", "specs/first.yaml")
    for key in ("sweeps/stranger/00000001", "agents/local/stranger/boot/beat", "agents/local/stranger/boot/00000001"):
        make_hole(shop, key)
    for key in ("roster", "bell", "adoptions/00000001", "permits/sweep/0/00000001", "stops/sweep/00000001"):
        make_hole(shop, key)
    marker = shop.root / ".monkey/store/projects/shop/queue/local/stranger/00000001"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_bytes(b"{}")
    shop.spec("max_concurrent_jobs: 1\nfail_fast: true\n", jobs=3)
    shop.run("apply", "specs/sweep.yaml", "--detach")
    until(lambda: shop.states() == {"succeeded": 3}, "the honest sweep has ended")
    assert shop.ledger.executions == 3 and "Traceback" not in shop.agent_log
    assert "sweeps/stranger/00000001" in shop.agent_log
    _, told = ask(shop, "status")
    assert "agents/local/stranger/boot/beat: it is too large" in told, told


def test_a_log_entry_of_a_job_that_is_too_large_counts_as_torn(shop: Shop) -> None:
    shop.hurry()
    shop.spec(jobs=1)
    shop.run("apply")
    until(lambda: not shop.agents, "the agent leaves")
    (job,) = [one["job"] for one in shop.json("list", "jobs")]
    end = shop.root / ".monkey/store/projects/shop/jobs" / job / "00000002"
    assert end.exists()
    make_hole(shop, f"jobs/{job}/00000002")
    segment = next(Path(end.parent, "out").rglob("log/*"), None)
    assert segment is not None
    make_hole(shop, f"jobs/{job}/{segment.relative_to(end.parent)}")
    code, told = ask(shop, "logs", job)
    assert code == 0 and "too large to be read" in told, told
    code, told = ask(shop, "verify", "sweep")
    assert code in (1, 2) and f"jobs/{job}/00000002" in told, told
