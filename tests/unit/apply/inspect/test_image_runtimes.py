"""What a plan and `monkey doctor` say of the runtimes that run images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.inspect.image_runtimes import add_image_notes, describe_runtime
from monkey.errors import FleetError
from monkey.plan.compute_plan import compute_plan
from monkey.plan.observed import ObservedProject
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from tests.unit.plan.making import grid, want


def provider(type_: str = "local", **more: Any) -> Provider:
    return Provider(type=type_, **more)


def test_this_machine_is_asked_and_of_others_it_is_said_what_they_look_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FleetError, match="provider 'here': its image cannot be run: this machine has none of"):
        describe_runtime("here", provider())
    with pytest.raises(FleetError, match="provider 'here': its image cannot be run: there is no docker here"):
        describe_runtime("here", provider(runtime="docker"))
    (tmp_path / "podman").write_text("#!/bin/sh\n")
    (tmp_path / "podman").chmod(0o755)
    assert describe_runtime("here", provider()) == "here runs it by podman"
    first = "lab runs it by the first of apptainer, podman, docker, charliecloud that works on the machine"
    assert describe_runtime("lab", provider("ssh", hosts=("a",))) == first
    assert describe_runtime("kube", provider("kubernetes")).startswith("kube runs it as the image of pods")
    assert describe_runtime("hpc", provider("slurm")).endswith("charliecloud that works on the node")
    rented = provider("aws", cloud=CloudSettings("eu-north-1", ("m7i.large",)))
    with pytest.raises(FleetError, match="'cloud' cannot run the image of a job: its machines") as refused:
        describe_runtime("cloud", rented)
    assert "set `image:` of the provider" in (refused.value.hint or "")
    assert "works on the machine" in describe_runtime(
        "cloud", replace(rented, cloud=CloudSettings("eu-north-1", ("m7i.large",), "ami-0a1b2c3d"))
    )
    named = describe_runtime("lab", provider("ssh", hosts=("a",), runtime="docker"))
    assert named == "lab runs it by docker, as `runtime:` says"


@pytest.mark.parametrize(
    ("code", "note"), [(0, "image: here runs it by docker"), (1, "docker does not work: no daemon")]
)
def test_a_plan_asks_once_for_all_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, note: str) -> None:
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\necho "no daemon" >&2\nexit {code}\n')
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = SweepSettings(image="python:3.12", providers=["here"])
    sweeps = [want(grid(lr=[0.1]), name=name, settings=settings) for name in ("one", "two", "three")]
    plan = add_image_notes(compute_plan(sweeps, ObservedProject()), {"here": provider()})
    assert [sweep.notes[-1].count(note) for sweep in plan.sweeps] == [1, 1, 1]
    assert (tmp_path / "asked").read_text() == "version\n"
