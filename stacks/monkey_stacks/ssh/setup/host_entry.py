"""The entry that `monkey init --provider ssh` writes, by what hosts say that they have. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.plan.sizes import format_size
from monkey.spec.yaml.spec_edit import spell_scalar
from monkey_stacks.ssh.host_state import ObservedHost, read_facts

#: What a host may say within a comment of monkey.yaml: no line's end, and no control character of a terminal.
_UNFIT = re.compile(r"[^A-Za-z0-9 ._()/+~-]")
#: Characters of a name that a host says, and kinds of GPUs that are named, at most.
_LONGEST, _MOST_KINDS = 60, 4


@dataclass(frozen=True)
class HostFinding:
    """A host that answered."""

    #: As the user named it.
    name: str
    seen: ObservedHost
    #: That its user may use.
    cpus: int
    #: Bytes of memory, and of the disk that the working directory is on.
    memory: int
    disk: int
    #: The model of each GPU.
    models: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return what it has, in a line: "8 CPUs, 31 GiB, 2 GPUs (NVIDIA A100), disk 90 GiB free of 120 GiB, …"."""
        cpus = f"{self.cpus} CPU{'s' * (self.cpus != 1)}"
        disk = f"disk {format_size(self.seen.free)} free of {format_size(self.disk)}"
        python = ".".join(map(str, self.seen.target.python))
        gpus = [describe_models(self.models)] if self.models else []
        return ", ".join([cpus, format_size(self.memory), *gpus, disk, f"Python {python}", self.seen.keeping])


def read_finding(name: str, facts: Mapping[str, Any]) -> HostFinding:
    """Return the host in a reply of `host_inventory.describe_host`; `name`: as the user named it."""
    models = tuple(_UNFIT.sub("", str(model))[:_LONGEST].strip() or "GPU" for model in facts["models"])
    return HostFinding(name, read_facts(facts), int(facts["cpus"]), int(facts["memory"]), int(facts["disk"]), models)


def describe_models(models: Sequence[str]) -> str:
    """Return how many GPUs there are of which model: "3 GPUs (2 NVIDIA A100 + 1 Tesla T4)"."""
    kinds = Counter(models).most_common(_MOST_KINDS)
    named = kinds[0][0] if len(kinds) == 1 else " + ".join(f"{count} {kind}" for kind, count in kinds)
    return f"{len(models)} GPU{'s' * (len(models) != 1)} ({named})"


def write_host_entry(findings: Sequence[HostFinding]) -> str:
    """Return the lines below the provider's name."""
    lines = ["type: ssh", "hosts:"]
    lines += [f"  - {spell_scalar(each.name)}  # {each.describe()}" for each in findings]
    if any(each.models for each in findings):
        lines.append("# gpus: [0, 1]  # of each host these alone; by default all but those on which others compute")
    return "".join(f"    {line}\n" for line in lines)
