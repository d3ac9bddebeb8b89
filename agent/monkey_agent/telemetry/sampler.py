"""The sampler reads every few seconds what the machine does, and what each job uses of it.

It reads in a thread that the agent does not wait for. A disk, a process or a driver that hangs delays the next samples,
never a heartbeat.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from monkey_agent.supervisor.process import SupervisedProcess
from monkey_agent.telemetry.gpu_meter import Gpu, GpuMeter, measure_gpu, measure_job_gpus
from monkey_agent.telemetry.host_meter import make_host_meter
from monkey_agent.telemetry.job_meter import make_job_meter
from monkey_agent.telemetry.meters import JobMeter, Meter, ProcessUsage
from monkey_agent.telemetry.samples import AttemptSamples

#: Seconds between samples.
EVERY = 15.0
#: Seconds that the supervisor may take to name the jobs' processes.
_PATIENCE_SECONDS = 5.0

_T = TypeVar("_T")


class SampledAttempt(Protocol):
    """A running attempt, as far as the sampler needs it."""

    job: str
    sweep: str
    gpus: tuple[str, ...]
    process: SupervisedProcess
    samples: AttemptSamples


class ProcessNames(Protocol):
    """The port by which the sampler learns the first processes of jobs."""

    async def mains(self) -> tuple[int, dict[int, int]]:
        """Return the supervisor's process, and each attempt's first process by its key."""


class Sample(NamedTuple):
    """The values of one moment, of a job, of a GPU (the driver's number), or of the whole machine without both."""

    #: Nanoseconds since the epoch, by this machine's clock.
    at: int
    fields: dict[str, float]
    job: str = ""
    sweep: str = ""
    gpu: str = ""


class MeterReading(NamedTuple):
    """One reading of the machine, its jobs and its GPUs."""

    at: int
    #: The same time in seconds, by a clock that is never set.
    clock: float
    host: dict[str, float]
    jobs: dict[int, ProcessUsage]
    gpus: list[Gpu]


class Sampler:
    """The sampler of an agent, which samples while the agent lives."""

    def __init__(
        self, launcher: ProcessNames, running: Collection[SampledAttempt], state: Path, every: float = EVERY
    ) -> None:
        """Sample the jobs in `running`, whose processes `launcher` knows, every `every` seconds."""
        self._launcher, self._running, self._state, self._every = launcher, running, state, every
        self._gpus: GpuMeter | None = None
        self._thread: threading.Thread | None = None
        self._meters: tuple[Meter, JobMeter] | None = None
        #: Called with all samples of a moment, the machine's first.
        self.on_samples: Callable[[list[Sample]], None] = lambda samples: None
        #: The machine's values for heartbeats: cpu, memory (percents), gpus (percents; None: it does not answer).
        self.vitals: dict[str, Any] = {}

    def begin(self, *, gpus: GpuMeter | None = None) -> None:
        """Start the meters; `gpus`: that of the GPUs, where the machine has some."""
        self._gpus = gpus
        self._meters = make_host_meter(self._state), make_job_meter(str(self._state))

    async def run(self) -> None:
        """Sample until cancelled, at even intervals however long a reading takes."""
        began, count = time.monotonic(), 0
        while True:
            count, wait = find_next_sample(time.monotonic() - began, count, self._every)
            await asyncio.sleep(wait)
            with contextlib.suppress(
                OSError, ValueError, LookupError
            ):  # a kernel that tells nothing: there is no sample, no more
                await self.sample()

    async def sample(self) -> None:
        """Take one sample, unless the last reading still runs. Raises OSError, ValueError."""
        if self._meters is None or (self._thread is not None and self._thread.is_alive()):
            return
        try:
            supervisor, mains = await asyncio.wait_for(self._launcher.mains(), _PATIENCE_SECONDS)
        except TimeoutError:
            return
        reading = await self._aside(lambda: self._read(supervisor, mains))
        host = Sample(reading.at, reading.host)
        gpus = [Sample(reading.at, told, gpu=str(gpu["index"])) for gpu in reading.gpus if (told := measure_gpu(gpu))]
        self._tell_vitals(reading)
        self.on_samples([host, *gpus, *self._jobs(reading)])

    def _read(self, supervisor: int, mains: dict[int, int]) -> MeterReading:
        assert self._meters is not None
        host, jobs = self._meters
        at, clock = time.time_ns(), time.monotonic()
        found, used = host.read(), jobs.read(supervisor, mains) if mains else {}
        return MeterReading(at, clock, found, used, self._gpus.read() if self._gpus else [])

    def _jobs(self, reading: MeterReading) -> list[Sample]:
        samples = []
        for running in list(self._running):
            running.samples.look()
            use = reading.jobs.get(running.process.key)
            if use is not None:
                fields = running.samples.add(
                    reading.at, reading.clock, use, measure_job_gpus(reading.gpus, running.gpus)
                )
                samples.append(Sample(reading.at, fields, job=running.job, sweep=running.sweep))
        return samples

    def _tell_vitals(self, reading: MeterReading) -> None:
        self.vitals = {
            "cpu": reading.host.get("cpu_percent"),
            "memory": reading.host.get("memory_percent"),
            "gpus": [gpu.get("percent") for gpu in reading.gpus],
        }
        lost = [f"GPU {gpu['index']}: {gpu['trouble']}" for gpu in reading.gpus if "trouble" in gpu]
        if trouble := self._gpus.trouble if self._gpus else "":
            lost.append(f"GPUs: {trouble}")
        if lost:
            self.vitals["trouble"] = "; ".join(lost)

    async def _aside(self, work: Callable[[], _T]) -> _T:
        """Return the result of `work`, done in a thread that delays no exit, unlike those of asyncio's pool."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_T] = loop.create_future()

        def settle(value: _T | None, error: BaseException | None) -> None:
            if not done.done():
                done.set_exception(error) if error else done.set_result(value)  # type: ignore[arg-type]  # one of both

        def body() -> None:
            try:
                outcome = work(), None
            except Exception as exc:
                outcome = None, exc  # type: ignore[assignment]  # one of both
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, *outcome)

        self._thread = threading.Thread(target=body, name="samples", daemon=True)
        self._thread.start()
        return await done

    def close(self) -> None:
        """Close the meter of the GPUs."""
        if self._gpus is not None:
            self._gpus.close()


def find_next_sample(passed: float, count: int, every: float) -> tuple[int, float]:
    """Return the number of the sample after the `count`-th, `passed` seconds after the start, and the seconds to wait.

    It skips samples that a slow reading, or a suspended machine, made us miss.
    """
    count = max(count, int(passed / every)) + 1
    return count, count * every - passed
