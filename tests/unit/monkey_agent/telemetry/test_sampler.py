"""What machines do and jobs use: real processes, held against what psutil says of them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from monkey.metrics.usage import USAGE_FILE
from monkey.processes import process_tree
from monkey.spec.job.recipe import JobResources
from monkey_agent.supervisor.process import ProcessExit
from monkey_agent.telemetry.host_meter import make_host_meter
from monkey_agent.telemetry.job_meter import ProcessCounter
from monkey_agent.telemetry.meters import ProcessUsage
from monkey_agent.telemetry.psutil_meters import PortableHostMeter, PortableJobMeter
from monkey_agent.telemetry.sampler import Sample, Sampler, find_next_sample
from monkey_agent.telemetry.samples import AttemptSamples
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, pids, script, until

MB = 1_000_000
#: Holds 100 MB of its own; leaves a grandchild without a parent, in a session of its own, that holds 50 MB more and
#: shares these, burns a second of CPU, and writes 20 MB to the disk; a child that was waited for burnt another.
FAMILY = """
import os, sys, time
place = sys.argv[1]
def burn(seconds):
    while sum(os.times()[:2]) < seconds: pass
def there(name):
    with open(f"{place}/{name}.new", "w") as file: file.write(str(os.getpid()))
    os.rename(f"{place}/{name}.new", f"{place}/{name}")
held = os.urandom(100_000_000)
if os.fork() == 0:
    burn(1); os._exit(0)
os.wait()
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    more = os.urandom(50_000_000)
    with open("written", "wb", buffering=0) as file:
        file.write(more[:20_000_000]); os.fsync(file.fileno())
    burn(1)
    there("orphan")
    time.sleep(1000)
os.wait()
there("first")
while not os.path.exists(f"{place}/enough"): time.sleep(0.01)
"""


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_all_processes_of_a_job_count_and_what_they_share_counts_once(body: Body, tmp_path: Path, run: Run) -> None:
    told: list[Sample] = []

    async def scenario() -> None:
        sampler = body.runner.sampler
        sampler.begin()
        sampler.on_samples = told.extend
        bystander = await body.start("sleep 1000")
        settings = {"resources": JobResources(memory=1_000 * MB)}
        running = await body.start([*script(FAMILY), str(tmp_path)], settings=settings)
        family = await until(lambda: pids(tmp_path / "first", tmp_path / "orphan"))
        assert running.usage() == {}
        await sampler.sample()
        [sample] = [sample for sample in told if sample.job == running.job]
        assert abs(sample.at - time.time_ns()) < 60e9 and sample.sweep == "sweep"
        members = [psutil.Process(pid) for pid in family]
        proportional = sum(one.memory_full_info()._asdict()["pss"] for one in members)
        assert 150 * MB < sample.fields["memory_bytes"] < 200 * MB
        assert sample.fields["memory_bytes"] == pytest.approx(proportional, rel=0.05)
        assert sum(one.memory_info().rss for one in members) > 250 * MB, "the test must have something to count twice"
        assert sample.fields["memory_percent"] == pytest.approx(sample.fields["memory_bytes"] / (10 * MB), abs=0.01)
        spent = sum(sum(one.cpu_times()[:4]) for one in members)
        assert spent >= 2 and sample.fields["cpu_seconds"] == pytest.approx(spent, rel=0.1)
        assert sample.fields["cpu_percent"] > 0
        assert sample.fields["disk_write_bytes"] >= 20 * MB
        [other] = [sample for sample in told if sample.job == bystander.job]
        assert other.fields["memory_bytes"] < 20 * MB and other.fields["cpu_seconds"] < 1
        assert body.runner.sampler.vitals["memory"] == told[0].fields["memory_percent"]
        (tmp_path / "enough").touch()
        outcome = await running.wait()
        lines = (await body.stored(running))[USAGE_FILE].splitlines()
        assert [json.loads(line)["m"] for line in lines] == [sample.fields]
        assert outcome.usage["memory_bytes"] == sample.fields["memory_bytes"]
        assert outcome.usage["cpus"] * outcome.seconds >= 2 * 0.99
        running.leave(recorded=True)
        await bystander.stop("enough")
        await bystander.wait()
        assert set(await body.stored(bystander)) == {USAGE_FILE}, "it wrote nothing, and was sampled"

    run(scenario())


def test_a_job_that_nobody_sampled_tells_what_the_kernel_counted(body: Body, run: Run) -> None:
    async def scenario() -> None:
        text = "import os, time\nx = os.urandom(100_000_000)\nwhile sum(os.times()[:2]) < 1: pass\ntime.sleep(1.1)"
        running = await body.start(script(text))
        outcome = await running.wait()
        assert 100 * MB < outcome.usage["memory_bytes"] < 200 * MB
        assert outcome.usage["cpus"] * outcome.seconds >= 1
        assert USAGE_FILE not in await body.stored(running)
        assert (await body.run("true")).usage == {}, "it was over at once: no record grows for that"

    run(scenario())


def test_samples_of_an_earlier_life_count(tmp_path: Path, run: Run) -> None:
    before = AttemptSamples(str(tmp_path / USAGE_FILE), asked=0)
    for second, memory, percent in ((1, 5, 40.0), (2, 9, 80.0), (3, 7, 60.0)):
        use = ProcessUsage(second * 1.5, memory * MB, 0, 0)
        fields = before.add(second * 10**9, time.monotonic(), use, {"gpu_percent": percent, "gpu_memory_bytes": memory})
        assert "memory_percent" not in fields
    with (tmp_path / USAGE_FILE).open("ab") as file:
        file.write(b'{"m": {"memory_bytes": "much"}}\n{"m": 3}\ngarbage\n{"m": {"mem')
    after = AttemptSamples(str(tmp_path / USAGE_FILE), asked=0)
    how = ProcessExit("ended", 0, 10.0, peak=1, cpu=0.5)
    expected = {"cpus": 0.45, "memory_bytes": 9 * MB, "gpu_percent": 60, "gpu_memory_bytes": 9}
    assert run(before.finish(how)) == run(after.finish(how)) == expected
    assert run(after.finish(how._replace(seconds=0.5))) == {}


def test_samples_come_at_even_distances_whatever_a_reading_takes() -> None:
    assert find_next_sample(0.0, 0, 15) == (1, 15)
    assert find_next_sample(15.2, 1, 15) == (2, pytest.approx(14.8))
    assert find_next_sample(44.0, 1, 15) == (3, 1), "one was missed"
    assert find_next_sample(14.9999, 1, 15)[0] == 2, "a clock that is a little early makes no second sample"


class Hanging:
    """A disk that does not answer."""

    def __init__(self) -> None:
        self.asked, self.answer = 0, threading.Event()

    def read(self) -> dict[str, float]:
        self.asked += 1
        self.answer.wait()
        return {"cpu_percent": 1.0}


def test_a_reading_that_hangs_holds_nobody_up(body: Body, run: Run) -> None:
    host = Hanging()

    async def scenario() -> None:
        sampler = body.runner.sampler
        sampler.begin()
        assert sampler._meters is not None
        sampler._meters = host, sampler._meters[1]
        hanging = asyncio.create_task(sampler.sample())
        await until(lambda: host.asked)
        await asyncio.wait_for(sampler.sample(), 30)
        assert host.asked == 1, "no second one is sent after it"
        hanging.cancel()
        host.answer.set()
        await until(lambda: sampler._thread is not None and not sampler._thread.is_alive())
        await sampler.sample()
        assert host.asked == 2 and sampler.vitals["cpu"] == 1.0

    run(scenario())


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_what_a_machine_does_is_what_psutil_says(tmp_path: Path) -> None:
    ours, theirs = make_host_meter(tmp_path), PortableHostMeter(tmp_path)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        os.urandom(1000)
    told, expected = ours.read(), theirs.read()
    assert told.keys() == expected.keys()
    assert 0 < told["cpu_percent"] <= 100
    assert told["disk_used_percent"] == pytest.approx(psutil.disk_usage(str(tmp_path)).percent, abs=1)
    # A cgroup of ours may have less than the machine.
    assert told["memory_percent"] >= 100 * told["memory_bytes"] / psutil.virtual_memory().total - 0.1
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(os.urandom(30 * MB))
        os.fsync(file.fileno())
    more, counted = ours.read(), psutil.disk_io_counters()
    assert counted is not None
    # Not on a disk in memory.
    assert more["disk_write_bytes"] > told["disk_write_bytes"] or counted.write_bytes == expected["disk_write_bytes"]


def test_the_portable_meter_counts_a_family(tmp_path: Path) -> None:
    text = "import os, time\nx = os.urandom(50_000_000)\nos.fork()\nopen('there', 'w').close()\ntime.sleep(1000)"
    first = psutil.Popen([*script(text)], cwd=tmp_path)
    try:
        asyncio.run(until((tmp_path / "there").exists))
        asyncio.run(until(lambda: len(first.children()) == 1))
        use = PortableJobMeter().read(0, {7: first.pid, 8: 2**22 + 1})
        assert set(use) == {7} and use[7].memory_bytes > 100 * MB and use[7].cpu_seconds > 0
    finally:
        for process in [*first.children(), first]:
            process.kill()
        first.wait()


def test_a_sum_that_falls_loses_nothing() -> None:
    counter = ProcessCounter()
    assert [counter.up_to(now) for now in (5, 8, 2, 3, 3)] == [5, 8, 8, 9, 9]


def test_a_sampler_that_has_not_begun_tells_nothing(body: Body, run: Run) -> None:
    sampler = body.runner.sampler
    assert isinstance(sampler, Sampler)
    run(sampler.sample())
    assert sampler.vitals == {}
