"""Jobs that would need a GPU and ask for none: the plan of a first sweep says so, and so does the failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.shop import Shop

NEEDS_ONE = "raise RuntimeError('No CUDA GPUs are available')\n"
#: The last lines of programs that found no GPU.
SAW_NONE = [
    # PyTorch: torch/csrc/cuda, `synchronize`; `torch.load` without map_location.
    ("RuntimeError: No CUDA GPUs are available",),
    (
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If "
        "you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu')",
    ),
    # The CUDA runtime, by PyTorch and by XGBoost (dmlc/xgboost#3953).
    (
        "RuntimeError: CUDA error: no CUDA-capable device is detected",
        "CUDA kernel errors might be asynchronously reported at some other API call.",
    ),
    ("xgboost.core.XGBoostError: [02:01:32] common.cu: 13: no CUDA-capable device is detected",),
    # JAX that was told to use a GPU (jax-ml/jax#24866), Lightning, TensorFlow (tensorflow/tensorflow#23773).
    ("RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.",),
    ("lightning.fabric.utilities.exceptions.MisconfigurationException: No supported gpu backend found!",),
    (
        "InvalidArgumentError: Cannot assign a device for operation init: Operation was explicitly assigned to "
        "/device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure",
    ),
]
#: Those of programs that failed for another reason: TensorFlow and JAX log that they found none, and continue.
ELSE = [
    ("AssertionError: Torch not compiled with CUDA enabled",),
    (
        "E cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: "
        "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        "INFO - Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.",
        "KeyError: 'lr'",
    ),
]


def write_spec(shop: Shop, text: str = "", name: str = "sweep") -> None:
    (shop.root / "train.py").write_text(NEEDS_ONE)
    shop.spec(f"command: python3 train.py\nparameters: {{}}\noutputs: []\n{text}", name=name)


def list_warnings(shop: Shop) -> list[str]:
    notes = [note for sweep in shop.json("plan")["sweeps"] for note in sweep["notes"]]
    return [note for note in notes if "GPU" in note]


def test_a_first_plan_names_the_gpus_that_no_job_asks_for(shop: Shop) -> None:
    shop.env["CUDA_VISIBLE_DEVICES"] = "GPU-one,GPU-two"
    write_spec(shop)
    (line,) = [line for line in shop.run("plan").stdout.splitlines() if "GPU" in line]
    told = "specs/sweep.yaml:2: this machine has 2 GPUs, and no job asks for any, so jobs see none: "
    assert line.strip() == f"warning: {told}write `resources: {{gpus: 1}}`; or `gpus: 0`, if they need none"
    write_spec(shop, "resources: {cpus: 1}\n")
    (note,) = list_warnings(shop)
    assert note.startswith("warning: specs/sweep.yaml:5: this machine has 2 GPUs, ")
    assert note.endswith("write `gpus: 1` in `resources:`; or `gpus: 0`, if they need none")


@pytest.mark.parametrize("asked", ["gpus: 0", "gpus: 0.5"])
def test_a_plan_does_not_name_them_to_who_chose(shop: Shop, asked: str) -> None:
    shop.env["CUDA_VISIBLE_DEVICES"] = "GPU-one"
    write_spec(shop, f"resources: {{{asked}}}\n")
    assert list_warnings(shop) == []


def test_where_no_driver_is_nvidia_smi_is_not_asked(shop: Shop, tmp_path: Path) -> None:
    if Path("/proc/driver/nvidia").exists() or Path("/dev/dxg").exists():
        pytest.skip("this machine has a driver")
    asked = tmp_path / "asked"
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\necho asked >> {asked}\n")
    (programs / "nvidia-smi").chmod(0o755)
    shop.env["PATH"] = f"{programs}:{shop.env['PATH']}"
    write_spec(shop)
    assert list_warnings(shop) == []
    assert not asked.exists()


def test_a_failure_for_want_of_a_gpu_says_how_to_ask_for_one(shop: Shop) -> None:
    shop.env["CUDA_VISIBLE_DEVICES"] = "GPU-one"
    write_spec(shop)
    said = shop.run("apply", code=None).stdout
    hint = "set `resources: {gpus: 1}`, and apply; then run `monkey retry`"
    assert hint in " ".join(said.split())
    (job,) = shop.json("list", "jobs", "sweep")
    assert job["reason"] == f"exit code 1 (hint: a job sees the GPUs that it asks for: {hint})"
    assert list_warnings(shop) == [], "it ran already"
    shop.spec("command: python3 train.py {i}\noutputs: []\nresources: {gpus: 1}\n", jobs=1, name="asks")
    shop.run("apply", "specs/asks.yaml", code=None)
    (job,) = shop.json("list", "jobs", "asks")
    assert job["reason"] == "exit code 1"


@pytest.mark.parametrize(("lines", "hints"), [*((each, True) for each in SAW_NONE), *((each, False) for each in ELSE)])
def test_what_frameworks_say_where_they_see_no_gpu(lines: tuple[str, ...], hints: bool) -> None:
    from monkey_agent.execution.exit_reasons import suggest_gpus

    assert bool(suggest_gpus(lines)) == hints
