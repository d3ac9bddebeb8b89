"""What Slurm answers, in our words: refusals, limits of partitions, reasons of pilots that wait."""

from __future__ import annotations

import pytest

from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey.spec.project.provider import Provider
from monkey_stacks.slurm import partition_limits
from monkey_stacks.slurm.slurm_engine import SlurmEngine
from monkey_stacks.slurm.slurm_errors import describe_test, find_hint, find_lasting_reason, make_refusal

PARTITIONS = (
    "PartitionName=low AllowGroups=ALL Default=YES MaxTime=4:00:00 State=UP TotalCPUs=8 TotalNodes=2 "
    "MaxMemPerNode=4000\n"
    "PartitionName=gpu AllowGroups=ALL Default=NO MaxTime=UNLIMITED State=DRAIN TotalCPUs=64 TotalNodes=1 "
    "MaxCPUsPerNode=32 MaxMemPerNode=UNLIMITED\n"
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("UNLIMITED", None), ("30:00", 1800), ("4:00:00", 14400), ("1-02:00:00", 93600), ("2-12", 216000), ("", None)],
)
def test_times_of_slurm(text: str, seconds: float | None) -> None:
    assert partition_limits.parse_limit_seconds(text) == seconds


def test_what_would_wait_for_ever_is_found_in_the_partition() -> None:
    low, gpu = (partition_limits.find_partition(PARTITIONS, name) for name in ("", "gpu"))
    assert partition_limits.find_partition(PARTITIONS, "none") == {}
    asked = SlurmSettings(5 * 3600, cpus=64, memory=8 << 30)
    assert list(partition_limits.list_limit_troubles(asked, low)) == [
        "time: 5h is more than MaxTime 4:00:00 of partition low",
        "memory: 8192 MiB is more than MaxMemPerNode 4000 of partition low",
    ]
    assert list(partition_limits.list_limit_troubles(asked, gpu)) == [
        "cpus: 64 is more than MaxCPUsPerNode 32 of partition gpu"
    ]
    assert list(partition_limits.list_limit_troubles(asked, {})) == []
    assert partition_limits.describe_partition(low) == "partition low: 2 nodes, 8 CPUs, jobs of 4:00:00 at most"
    assert partition_limits.describe_partition(gpu).endswith("jobs of unlimited at most, state DRAIN")


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            "lab: sbatch refuses it (Invalid account or account/partition combination specified)",
            "`account:`",
        ),
        (
            "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed",
            "partition",
            "sinfo",
        ),
        ("sbatch: error: Invalid qos specification", "Invalid qos", "`qos:`"),
        ("allocation failure: Requested node configuration is not available", "node configuration", "ask for less"),
        ("AssocMaxSubmitJobLimit", "AssocMaxSubmitJobLimit", "lower `pilots:`"),
        ("Unable to contact slurm controller (connect failure)", "controller", "sinfo"),
        ("fatal: Could not establish a configuration source", "lab: sbatch refuses it", "`monkey init --login HOST`"),
        ("something new", "something new", "run `sbatch` on hpc to see more"),
    ],
)
def test_a_refusal_says_what_to_do(said: str, message: str, hint: str) -> None:
    error = make_refusal("lab", "hpc", {"refused": "slurm", "program": "sbatch", "said": said})
    assert message in error.message and hint in (error.hint or "")


def test_a_login_node_without_slurm_or_room() -> None:
    missing = make_refusal("lab", "hpc", {"refused": "missing", "program": "sbatch", "said": ""})
    assert missing.message == "hpc knows no sbatch" and "module load slurm" in (missing.hint or "")
    assert "`monkey init --login HOST`" in (missing.hint or "")
    full = make_refusal("lab", "hpc", {"refused": "file", "program": "/w/x", "said": "No space left on device"})
    assert full.message == "hpc: no space left on device (/w/x)"


def test_a_forecast_has_no_number_of_a_job_that_is_none() -> None:
    said = "sbatch: Job 12 to start at 2026-11-22T17:32:43 using 2 processors on nodes n1 in partition low"
    assert describe_test(said).startswith("the next would start at 2026-11-22T17:32:43 using 2")
    assert find_hint("all is well") == ""


@pytest.mark.parametrize(
    ("state", "reason", "node", "about", "agent", "stuck"),
    [
        ("RUNNING", "None", "n1", "on n1, 4:43 left", "n1-23", ""),
        ("COMPLETING", "None", "n1", "on n1, completing", "n1-23", ""),
        ("PENDING", "Priority", "", "waits: Priority", "", ""),
        ("PENDING", "BeginTime", "", "waits: it comes again", "", ""),
        ("PENDING", "PartitionTimeLimit", "", "waits: PartitionTimeLimit", "", "PartitionTimeLimit"),
    ],
)
def test_pilots_as_the_queue_shows_them(state: str, reason: str, node: str, about: str, agent: str, stuck: str) -> None:
    engine = SlurmEngine("lab", Provider("slurm", slurm=SlurmSettings(3600)), "p", "/s")
    row = {"id": "20_0", "job": "23", "state": state, "reason": reason, "node": node, "left": "4:43"}
    (pilot,) = engine.read_state({"pilots": [row], "failures": [], "there": True}).pilots
    assert (pilot.about, pilot.agent, pilot.stuck) == (about, agent, stuck)
    assert bool(pilot.hint) == bool(stuck) == bool(find_lasting_reason(reason))
