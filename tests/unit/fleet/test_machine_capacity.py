"""What of a machine an engine says is ours: it may not confine us to it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from monkey.errors import MachineUnfit
from monkey.fleet.machine_capacity import read_allocated_cpus, read_allocated_memory

MEASURED = "from monkey.fleet.machine_capacity import *; found = measure_capacity(); print(found.cpus, found.memory)"


def measured(**variables: str) -> tuple[float, int]:
    """Return the CPUs and bytes that a process with these variables measures."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "MONKEY_"))}
    run = subprocess.run(
        [sys.executable, "-c", MEASURED], env={**kept, **variables}, capture_output=True, text=True, check=True
    )
    cpus, memory = run.stdout.split()
    return float(cpus), int(memory)


def test_an_allocation_bounds_what_affinity_and_control_groups_leave_open() -> None:
    cpus, memory = measured()
    assert measured(SLURM_CPUS_ON_NODE="1", SLURM_MEM_PER_NODE="500") == (min(1, cpus), 500 << 20)
    assert measured(MONKEY_CPUS="0.5", MONKEY_MEMORY="200MiB") == (0.5, 200 << 20)
    assert measured(SLURM_CPUS_ON_NODE="4096", SLURM_MEM_PER_NODE="99999999") == (cpus, memory)


@pytest.mark.parametrize(
    ("variables", "cpus", "memory"),
    [
        ({}, math.inf, sys.maxsize),
        ({"SLURM_CPUS_ON_NODE": "8", "SLURM_MEM_PER_CPU": "1000"}, 8, 8000 << 20),
        ({"SLURM_MEM_PER_CPU": "1000"}, math.inf, sys.maxsize),
        ({"SLURM_CPUS_ON_NODE": "8", "SLURM_MEM_PER_NODE": "0"}, 8, sys.maxsize),
        ({"SLURM_MEM_PER_NODE": "2048", "SLURM_MEM_PER_CPU": "1", "SLURM_CPUS_ON_NODE": "1"}, 1, 2 << 30),
        ({"MONKEY_CPUS": "2", "SLURM_CPUS_ON_NODE": "8"}, 2, sys.maxsize),
        ({"MONKEY_MEMORY": "1073741824", "SLURM_MEM_PER_NODE": "2048"}, math.inf, 1 << 30),
        ({"MONKEY_MEMORY": "4GiB", "SLURM_MEM_PER_NODE": "2048"}, math.inf, 2 << 30),
        ({"MONKEY_CPUS": "", "MONKEY_MEMORY": ""}, math.inf, sys.maxsize),
    ],
)
def test_the_least_that_is_said_counts(variables: Mapping[str, str], cpus: float, memory: int) -> None:
    assert read_allocated_cpus(variables) == cpus
    assert read_allocated_memory(variables) == memory


@pytest.mark.parametrize(
    ("name", "text"),
    [("MONKEY_CPUS", "two"), ("MONKEY_CPUS", "0"), ("MONKEY_CPUS", "nan"), ("SLURM_CPUS_ON_NODE", "4(x2)")],
)
def test_cpus_that_are_no_number_are_refused(name: str, text: str) -> None:
    with pytest.raises(MachineUnfit, match=f"{name}: expected a number") as refused:
        read_allocated_cpus({name: text})
    assert name in (refused.value.hint or "")


def test_memory_that_is_no_size_is_refused() -> None:
    with pytest.raises(MachineUnfit, match="MONKEY_MEMORY: expected a size, found the text 'much'"):
        read_allocated_memory({"MONKEY_MEMORY": "much"})
    with pytest.raises(MachineUnfit, match="SLURM_MEM_PER_NODE: expected a number"):
        read_allocated_memory({"SLURM_MEM_PER_NODE": "2G"})
