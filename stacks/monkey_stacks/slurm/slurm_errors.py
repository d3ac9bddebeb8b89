"""What Slurm says, in our words, with what to do: the one place where its errors become ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from monkey.errors import FleetError

#: How to name another login node.
_OTHER_LOGIN = "name the login node, by `login:` in monkey.yaml or `monkey init --login HOST`"
#: What sbatch says, and what to do, the most telling first.
_HINTS = (
    (r"account or account/partition", "write an `account:` that `sacctmgr show assoc user=$USER` there names"),
    (r"qos", "write a `qos:` that `sacctmgr show assoc user=$USER format=account,qos` there names"),
    (r"submit limit|Limit", "lower `pilots:`, or ask for less: `sacctmgr show assoc user=$USER` there has the limits"),
    (r"partition", "write a `partition:` that `sinfo -s` there names"),
    (r"reservation", "write a `reservation:` that `scontrol show reservation` there names"),
    (r"feature|constraint", "write a `constraint:` of the features that `sinfo -o '%P %f'` there names"),
    (r"gres|generic resource", "write `gpus:` as `sinfo -o '%P %G'` there names them: 1, or TYPE:1"),
    (r"node configuration", "ask for less: `sinfo -o '%P %c %m %G'` there has each partition's CPUs, memory and GPUs"),
    (r"time limit|TimeLimit", "lower `time:`: `sinfo -o '%P %l'` there has the limits"),
    (r"unrecognized option|invalid option", "correct `sbatch:`: that Slurm has other options"),
    (r"contact slurm controller|Connection refused|did not answer", "is the controller up? try `sinfo` there"),
    (r"configuration source|fetch.config|DNS SRV", f"Slurm is installed, but knows no cluster: {_OTHER_LOGIN}"),
)
#: Reasons for which a pilot waits for ever, and what to do.
_STUCK = {
    "PartitionTimeLimit": "`time:` is more than the partition's limit: lower it",
    "PartitionConfig": "no node of the partition has what a pilot asks for: lower `cpus:`, `memory:` or `gpus:`",
    "BadConstraints": "no node has what `constraint:` asks for",
    "AccountNotAllowed": "the partition does not take this `account:`",
    "QOSNotAllowed": "the partition does not take this `qos:`",
    "InvalidAccount": "name another `account:`",
    "InvalidQOS": "name another `qos:`",
    "AssocGrpCpuLimit": "the account's limit of CPUs is less than a pilot asks for, or in use",
    "QOSMaxCpuPerJobLimit": "lower `cpus:`: the QOS allows fewer",
    "QOSMaxMemoryPerJob": "lower `memory:`: the QOS allows less",
    "QOSMaxGRESPerJob": "lower `gpus:`: the QOS allows fewer",
    "QOSMaxWallDurationPerJobLimit": "lower `time:`: the QOS allows less",
    "AssocMaxWallDurationPerJobLimit": "lower `time:`: the account allows less",
    "JobHeldAdmin": "an administrator holds it: ask why",
    "JobHeldUser": "`scontrol release` lets it go",
    "DependencyNeverSatisfied": "`monkey destroy` removes it: what it depends on failed",
}


def make_refusal(provider: str, where: str, reply: Mapping[str, Any]) -> FleetError:
    """Return the error for an operation on the login node `where` that did not do as asked."""
    kind, program, said = reply["refused"], reply["program"], _shorten(reply["said"])
    if kind == "missing":
        return FleetError(
            f"{where} knows no sbatch",
            hint=f"{_OTHER_LOGIN}. Where Slurm is a module, load it in ~/.bash_profile there: module load slurm",
        )
    if kind == "slurm":
        verb = "refuses it" if program == "sbatch" else "fails"
        hint = find_hint(said) or f"run `{program}` on {where} to see more"
        return FleetError(f"{provider}: {program} {verb} ({said})", hint=hint)
    if kind == "file":
        hint = "name another place with `workdir:`, or free some space there"
        return FleetError(f"{where}: {said.lower()} ({program})", hint=hint)
    return FleetError(f"{where}: {said}", hint="try again")


def find_hint(said: str) -> str:
    """Return what to do about what sbatch said; "" where that is not known."""
    return next((hint for pattern, hint in _HINTS if re.search(pattern, said, re.IGNORECASE)), "")


def find_lasting_reason(reason: str) -> str:
    """Return what to do about a reason for which a pilot would wait for ever; "" for all that pass."""
    return _STUCK.get(reason, "")


def _shorten(said: str) -> str:
    """Return what a program of Slurm said, on one line and without its own name."""
    lines = [re.sub(r"^(sbatch|squeue|scancel|scontrol): (error: )?", "", line.strip()) for line in said.splitlines()]
    told = "; ".join(dict.fromkeys(filter(None, lines)))
    return re.sub(r"^(allocation failure|Batch job submission failed): ", "", told)[:300]


def describe_test(said: str) -> str:
    """Return what `sbatch --test-only` said, without the number of a job that is none."""
    return re.sub(r"^Job \d+ to start at (\S+)", r"the next would start at \1", _shorten(said))
