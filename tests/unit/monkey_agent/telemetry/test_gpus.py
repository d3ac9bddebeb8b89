"""GPUs by NVIDIA's own Python library, over a driver's library that is ours: there is no GPU where tests run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey_agent.telemetry.gpu_meter import GpuMeter, measure_gpu, measure_job_gpus
from tests.unit.monkey_agent.body import alive

A, B = "GPU-aaaa-1", "GPU-bbbb-2"
GIB = 1 << 30


@pytest.fixture(scope="session")
def driver(require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the library."""
    there = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml.c")
    library = there / "libnvidia-ml.so.1"
    subprocess.run([require("gcc"), "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return there


@pytest.fixture
def gpus(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that says what each GPU does: (uuid, percent, bytes, milliwatts, degrees, how)."""
    state = tmp_path / "gpus"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    monkeypatch.setenv("NVML_STATE", str(state))

    def say(*lines: tuple[str, int, int, int, int, str]) -> None:
        aside = state.with_name("aside")
        aside.write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
        aside.replace(state)

    return say


@pytest.fixture
def meter() -> Iterator[GpuMeter]:
    """Return a meter that tries again at once."""
    meter = GpuMeter(patience=60.0, again=0.0)
    yield meter
    meter.close()


def test_what_gpus_do(gpus: Callable[..., None], meter: GpuMeter) -> None:
    gpus((A, 87, 3 * GIB, 250_500, 61, "fine"), (B, 13, GIB, 99_000, 40, "fine"))
    one, two = found = meter.read()
    assert (one["index"], one["uuid"], two["uuid"], meter.trouble) == (0, A, B, "")
    told = {"gpu_percent": 87, "gpu_memory_bytes": 3 * GIB, "gpu_power_watts": 250.5, "gpu_temperature": 61}
    assert measure_gpu(one) == told
    for names in ([A], ["0"], ["GPU-aaaa"]):
        assert measure_job_gpus(found, names) == told
    both = {"gpu_percent": 50, "gpu_memory_bytes": 4 * GIB, "gpu_power_watts": 349.5, "gpu_temperature": 61}
    assert measure_job_gpus(found, ["1", "0"]) == both
    assert measure_job_gpus(found, []) == measure_job_gpus(found, ["GPU-cccc"]) == {}
    reader = meter._reader
    gpus((A, 12, 0, 0, 61, "fine"))
    assert [gpu["percent"] for gpu in meter.read()] == [12]
    assert meter._reader is reader, "the driver is opened once"


def test_a_part_of_a_split_gpu(gpus: Callable[..., None], meter: GpuMeter) -> None:
    gpus((A, 0, 4 * GIB, 90_000, 50, "split"))
    found = meter.read()
    assert measure_job_gpus(found, [f"MIG-{A}"]) == {"gpu_memory_bytes": 2 * GIB}
    assert measure_gpu(found[0]) == {"gpu_memory_bytes": 4 * GIB, "gpu_power_watts": 90, "gpu_temperature": 50}


def test_memory_is_what_processes_hold(gpus: Callable[..., None], meter: GpuMeter) -> None:
    """As nvidia-smi has it: without what the driver keeps for itself. A driver before 510 tells both in one."""
    gpus((A, 0, GIB, 0, 40, "fine"), (B, 0, GIB, 0, 40, "old"))
    assert [gpu["memory"] for gpu in meter.read()] == [GIB, GIB + 600 * (1 << 20)]


def test_one_that_fell_off_the_bus_takes_nothing_with_it(gpus: Callable[..., None], meter: GpuMeter) -> None:
    gpus((A, 87, GIB, 0, 61, "lost"), (B, 13, GIB, 0, 40, "fine"))
    lost, fine = meter.read()
    assert lost == {"index": 0, "trouble": "GPU is lost"} and fine["percent"] == 13
    assert meter.trouble == ""


@pytest.mark.parametrize(
    ("how", "patience", "why"),
    [("crashes", 60.0, "took its process down"), ("hangs", 1.0, "does not answer within 1 s")],
)
def test_a_driver_that_crashes_or_hangs_is_left_alone_for_a_while(
    gpus: Callable[..., None], meter: GpuMeter, how: str, patience: float, why: str
) -> None:
    gpus((A, 87, GIB, 0, 61, "fine"))
    assert meter.read()[0]["percent"] == 87
    assert meter._reader is not None
    reader = meter._reader.pid
    gpus((A, 87, GIB, 0, 61, how))
    meter._patience, meter._again = patience, 1000.0
    assert meter.read() == [] and why in meter.trouble
    assert not alive(reader)
    assert meter.read() == [] and meter._reader is None, "it is not asked again and again"
    gpus((A, 12, GIB, 0, 61, "fine"))
    meter._patience, meter._not_before = 60.0, 0.0
    assert meter.read()[0]["percent"] == 12 and meter.trouble == ""


def test_no_driver_is_said(meter: GpuMeter, gpus: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert meter.read() == [] and "Driver Not Loaded" in meter.trouble
    monkeypatch.setenv("LD_LIBRARY_PATH", os.devnull)
    assert meter.read() == [] and "Library Not Found" in meter.trouble
