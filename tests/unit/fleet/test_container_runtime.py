"""Which program of a machine runs containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.fleet.container_runtime import RUNTIME_PROGRAMS, ContainerRuntime, find_runtime
from monkey.spec.job.runtime_kind import RUNTIME_KINDS


def write_program(directory: Path, name: str, script: str = "exit 0") -> str:
    program = directory / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_the_first_that_works_runs_images(tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path)}
    with pytest.raises(LookupError, match=r"none of apptainer, singularity, podman, docker, ch-run \(hint: install"):
        find_runtime(path)
    docker = write_program(tmp_path, "docker")
    assert find_runtime(path) == ContainerRuntime("docker", docker)
    write_program(tmp_path, "podman", "echo cannot open its storage >&2; exit 125")
    assert find_runtime(path) == ContainerRuntime("docker", docker), "podman is here, and does not work"
    write_program(tmp_path, "docker", "echo warning >&2; echo no daemon answers >&2; exit 1")
    both = "podman does not work: cannot open its storage; docker does not work: no daemon answers"
    with pytest.raises(LookupError, match=both):
        find_runtime(path)
    podman = write_program(tmp_path, "podman", 'test "$1" = info')
    assert find_runtime(path) == ContainerRuntime("podman", podman)


def test_the_one_that_the_provider_names_is_taken(tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path)}
    write_program(tmp_path, "podman")
    with pytest.raises(
        LookupError, match=r"no charliecloud here, which `runtime:` names \(hint: install charliecloud, or"
    ):
        find_runtime(path, "charliecloud")
    program = write_program(tmp_path, "ch-run", 'test "$USER"')
    with pytest.raises(
        LookupError, match=r"charliecloud does not work: there is no ch-image \(hint: repair charliecloud"
    ):
        find_runtime(path, "charliecloud")
    [write_program(tmp_path, name) for name in ("ch-image", "setpriv", "unshare")]
    assert find_runtime(path, "charliecloud") == ContainerRuntime("charliecloud", program)
    assert find_runtime(path).kind == "podman"


def test_the_kinds_are_those_that_a_provider_may_name_in_their_order() -> None:
    assert tuple(RUNTIME_PROGRAMS) == RUNTIME_KINDS
