"""Facts of machines: what is known of any CPU, and of the GPUs that a job has."""

from __future__ import annotations

from pathlib import Path

from monkey.fleet.gpus import GpuModels, parse_gpu_models
from monkey.protocol.record.facts import decode_facts, encode_facts
from monkey_agent.facts.machine_facts import read_machine_facts, select_gpu_facts

X86 = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu avx2 sse\n\nprocessor\t: 1\nmodel name\t: other\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
LISTING = """\
GPU 0: NVIDIA H200 (UUID: GPU-aaaa-1)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb-1)
  MIG 1g.5gb      Device  0: (UUID: MIG-cccc-1)
"""


def read_with(proc: Path, cpuinfo: str) -> dict[str, object]:
    (proc / "cpuinfo").write_text(cpuinfo)
    return read_machine_facts(proc)


def test_this_machine_is_known_and_fits_the_shape() -> None:
    found = read_machine_facts()
    assert decode_facts("k", encode_facts(found)) == found
    assert {"kernel", "machine", "cpus"} <= found.keys() and found["cpus"] >= 1


def test_a_cpu_is_its_model_and_its_flags_in_any_order(tmp_path: Path) -> None:
    found = read_with(tmp_path, X86)
    assert found["cpu"] == "AMD EPYC 7B13"
    assert read_with(tmp_path, X86.replace("fpu avx2 sse", "sse avx2 fpu"))["cpu_flags"] == found["cpu_flags"]
    assert read_with(tmp_path, X86.replace("avx2", "avx512f"))["cpu_flags"] != found["cpu_flags"]
    assert read_with(tmp_path, ARM)["cpu"] == "0x41 0xd0c"


def test_a_machine_without_proc_has_the_rest(tmp_path: Path) -> None:
    assert "cpu_flags" not in read_machine_facts(tmp_path) and "kernel" in read_machine_facts(tmp_path)


def test_a_job_has_the_models_of_its_own_gpus() -> None:
    found = GpuModels(parse_gpu_models(LISTING), "550.54.15")
    assert select_gpu_facts(found, ("0",)) == {"gpus": ["NVIDIA H200"], "driver": "550.54.15"}
    assert select_gpu_facts(found, ("GPU-aaaa", "GPU-bbbb-1"))["gpus"] == ["NVIDIA H200", "NVIDIA A100-SXM4-40GB"]
    assert select_gpu_facts(found, ("MIG-cccc-1",))["gpus"] == ["NVIDIA A100-SXM4-40GB MIG 1g.5gb"]
    assert select_gpu_facts(found, ()) == {} and select_gpu_facts(GpuModels({}, ""), ("7",)) == {}
