"""What `monkey init --provider slurm` asks a login node."""

from __future__ import annotations

from collections.abc import Mapping

from monkey_stacks.slurm.cluster_entry import parse_cluster, write_entry
from monkey_stacks.slurm.login_node import LoginNode


def ask_for_entry(name: str, asked: Mapping[str, str]) -> str:
    """Ask the login node what it has, and return the lines of an entry of monkey.yaml, without the provider's name.

    `asked`: `login` and `partition`, if not this machine and the cluster's default. Raises HostAway, FleetError.
    """
    login = asked.get("login", "")
    return write_entry(parse_cluster(LoginNode(name, login).ask("describe", {})), login, asked.get("partition", ""))
