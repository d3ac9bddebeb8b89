"""What a cluster has for its user: partitions, nodes and accounts, as Slurm's own programs list them."""

from __future__ import annotations

import os
from typing import IO, Any

from monkey_stacks.slurm.remote import slurm_programs
from monkey_stacks.ssh.remote.host_facts import read_user_name

#: For each kind of node in a partition: partition, CPUs, MiB, GPUs and other resources, number of nodes.
_NODES = "%R|%c|%m|%G|%D"


def list_cluster(asked: dict[str, Any], payload: IO[bytes]) -> dict[str, Any]:
    """Return what Slurm says of partitions, nodes and our accounts. Raises SlurmRefused, SlurmMissing.

    Without a database of accounts, there are none to name.
    """
    partitions = slurm_programs.run_program("scontrol", "-o", "show", "partition")
    nodes = slurm_programs.run_program("sinfo", "-h", "-e", "-o", _NODES)
    try:
        words = ("show", "assoc", f"user={read_user_name()}", "format=account,partition,qos")
        accounts = slurm_programs.run_program("sacctmgr", "-n", "-P", *words)
    except slurm_programs.SlurmRefused:
        accounts = ""
    home = os.path.expanduser("~")  # noqa: PTH111
    return {"partitions": partitions, "nodes": nodes, "accounts": accounts, "home": home}
