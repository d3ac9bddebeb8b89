"""What `monkey init --provider slurm` writes, by the answers of clusters."""

from __future__ import annotations

from typing import Any

import pytest

from monkey.errors import FleetError
from monkey.spec.project.provider import find_provider_mistakes, parse_provider
from monkey.spec.yaml.document import parse_document
from monkey_stacks.slurm.cluster_entry import parse_cluster, write_entry

PARTITIONS = """\
PartitionName=debug AllowAccounts=ALL Default=NO MaxTime=00:01:00 State=UP
PartitionName=main AllowAccounts=ALL Default=YES MaxTime=2-00:00:00 State=UP
PartitionName=gpu AllowAccounts=physics,bio Default=NO MaxTime=01:30:30 State=UP
PartitionName=old AllowAccounts=ALL Default=NO MaxTime=UNLIMITED State=DOWN
PartitionName=bad\x1b[31m AllowAccounts=ALL Default=NO MaxTime=UNLIMITED State=UP
"""
NODES = """\
main|64|256000+|(null)|100
main|2|2000|(null)|1
gpu|32|128000|gpu:a100:4(S:0-1),lscratch:9|8
gpu|8|64000|gpu:2|1
"""


def answers(**others: str) -> dict[str, str]:
    return {"partitions": PARTITIONS, "nodes": NODES, "accounts": "bio|main|normal\nchem||\n", **others}


def entry(*, login: str = "me@hpc", wanted: str = "", **others: str) -> tuple[str, dict[str, Any]]:
    """Return the lines, and what they say; they must be an entry without mistakes."""
    text = write_entry(parse_cluster(answers(**others)), login, wanted)
    data = parse_document(f"providers:\n  cluster:\n{text}", "monkey.yaml").data
    assert find_provider_mistakes(data["providers"]) == []
    found: dict[str, Any] = data["providers"]["cluster"]
    parse_provider(found)
    return text, found


def test_the_default_partition_is_taken_and_the_others_are_named() -> None:
    text, said = entry()
    asked = {"type": "slurm", "login": "me@hpc", "partition": "main", "time": "4h", "pilots": 2, "cpus": 4}
    assert said == {**asked, "memory": "16000MiB"}, "as most of its nodes have"
    assert "# partition: gpu  # 8 nodes of 32 CPUs, 125 GiB, GPUs a100:4 + 1 node of 8 CPUs" in text
    assert "# account: bio  # yours: bio, chem; the default one without this line" in text
    assert "old" not in text and "\x1b" not in text
    assert "login" not in entry(login="")[1]


def test_a_partition_that_is_named_brings_its_account_and_gpus() -> None:
    text, said = entry(wanted="gpu")
    assert (said["partition"], said["account"], said["time"]) == ("gpu", "bio", "1h30m")
    assert "# gpus: a100:1  # a node has a100:4 or 2" in text
    with pytest.raises(FleetError, match="found 'gpus'") as caught:
        entry(wanted="gpus")
    assert "main" in (caught.value.hint or "")


def test_clusters_that_say_little() -> None:
    text, said = entry(nodes="", accounts="")
    assert said["cpus"] == 1 and "memory" not in said and "# account" not in text
    one = "PartitionName=all AllowAccounts=ALL Default=NO MaxTime=UNLIMITED State=UP\n"
    assert entry(partitions=one)[1]["partition"] == "all", "there is no default one"
    assert entry(login="[fd00::1]:22", partitions=one.replace("all", "1e3"))[1]["partition"] == "1e3"
    with pytest.raises(FleetError, match="no partition that takes your jobs"):
        entry(partitions="", nodes="")
