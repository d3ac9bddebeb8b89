"""The entry that `monkey init --provider slurm` writes, by what a cluster says that it has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from monkey.errors import FleetError
from monkey.plan.sizes import format_size
from monkey.spec.yaml.units import format_duration
from monkey_stacks.pilots.entry_lines import join_entry_lines, quote_yaml_word
from monkey_stacks.slurm.partition_limits import parse_limit_seconds

#: Names that an entry may have; what else a cluster says is left out.
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,62}")
#: Seconds that a pilot gets, at most; and those that it needs.
_TIME_SECONDS, _LEAST_SECONDS = 4 * 3600.0, 120.0
#: CPUs of a pilot and pilots, at most: a first sweep shall not take a cluster.
_CPUS, _PILOTS = 4, 2
#: Partitions, accounts and kinds of nodes that are named, at most.
_MOST = 8


@dataclass(frozen=True)
class NodeKind:
    """Nodes of one partition that are alike."""

    count: int
    cpus: int
    #: Bytes.
    memory: int
    #: As `gpus:` is written, each with the number of one node: ("a100:4",).
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterPartition:
    """A partition that takes jobs."""

    name: str
    default: bool
    #: Seconds of a job, at most; None for no limit.
    most: float | None
    #: Accounts that it takes; () for all.
    accounts: tuple[str, ...] = ()
    nodes: tuple[NodeKind, ...] = ()


@dataclass(frozen=True)
class ClusterFacts:
    """What a cluster has for its user; no accounts where it does not count them."""

    partitions: tuple[ClusterPartition, ...]
    accounts: tuple[str, ...] = field(default=())

    def choose_partition(self, wanted: str = "") -> ClusterPartition:
        """Return the partition to begin with: `wanted`, the default one, or the first that takes us.

        Raises FleetError.
        """
        named = {each.name: each for each in self.partitions}
        if wanted and wanted not in named:
            listed = ", ".join(sorted(named))
            hint = f"choose one by --partition: {listed}" if listed else "ask its administrators: none takes jobs"
            raise FleetError(f"expected a partition of the cluster, found {wanted!r}", hint=hint)
        fits = [each for each in self.partitions if self._takes_us(each)]
        chosen = [named[wanted]] if wanted else [each for each in fits if each.default] or fits
        if not chosen:
            raise FleetError(
                "the cluster has no partition that takes your jobs for two minutes or longer",
                hint="look at `sinfo -s` there, and ask an administrator",
            )
        return chosen[0]

    def _takes_us(self, partition: ClusterPartition) -> bool:
        long_enough = partition.most is None or partition.most >= _LEAST_SECONDS
        ours = not partition.accounts or not self.accounts or not set(partition.accounts).isdisjoint(self.accounts)
        return long_enough and ours


def parse_cluster(said: Mapping[str, str]) -> ClusterFacts:
    """Return what the answers of scontrol, sinfo and sacctmgr say; `said`: those of `cluster_inventory`."""
    kinds: dict[str, list[NodeKind]] = {}
    for line in said["nodes"].splitlines():
        words = line.strip().split("|")
        if len(words) == 5 and all(word.rstrip("+").isdigit() for word in (words[1], words[2], words[4])):
            cpus, memory, count = (int(word.rstrip("+")) for word in (words[1], words[2], words[4]))
            kinds.setdefault(words[0], []).append(NodeKind(count, cpus, memory << 20, _parse_gres(words[3])))
    found = []
    for line in said["partitions"].splitlines():
        has = dict(re.findall(r"(\S+?)=(\S*)", line))
        name = has.get("PartitionName", "")
        if _NAME.fullmatch(name) and has.get("State", "UP") == "UP":
            allowed = has.get("AllowAccounts", "ALL")
            accounts = () if allowed == "ALL" else tuple(filter(_NAME.fullmatch, allowed.split(",")))
            limit = parse_limit_seconds(has.get("MaxTime", ""))
            nodes = tuple(kinds.get(name, ()))
            found.append(ClusterPartition(name, has.get("Default") == "YES", limit, accounts, nodes))
    ours = [line.partition("|")[0].strip() for line in said["accounts"].splitlines()]
    return ClusterFacts(tuple(found), tuple(dict.fromkeys(filter(_NAME.fullmatch, ours))))


def _parse_gres(said: str) -> tuple[str, ...]:
    """Return the GPUs in a list of generic resources: "gpu:a100:4(S:0-1),lscratch:9" has "a100:4"."""
    found = re.findall(r"(?:^|,)gpu:(?:([A-Za-z][\w.-]*):)?(\d+)", said)
    return tuple(f"{kind}:{count}" if kind else count for kind, count in found)


def write_entry(facts: ClusterFacts, login: str, wanted: str = "") -> str:
    """Return the lines below the provider's name. `login`: "" for this machine; `wanted`: the partition, or "".

    Raises FleetError.
    """
    chosen = facts.choose_partition(wanted)
    most = min(chosen.most or _TIME_SECONDS, _TIME_SECONDS)
    # Whole minutes, as Slurm counts.
    time = format_duration(max(_LEAST_SECONDS, most // 60 * 60))
    lines = ["type: slurm", *([f"login: {quote_yaml_word(login)}"] if login else [])]
    lines += [f"partition: {quote_yaml_word(chosen.name)}  # {describe_kinds(chosen)}"]
    lines += [f"# partition: {each.name}  # {describe_kinds(each)}" for each in facts.partitions if each != chosen][
        :_MOST
    ]
    lines += _write_accounts(facts, chosen)
    lines += [f"time: {time}  # of one pilot; it comes again while there is work", f"pilots: {_PILOTS}  # at most"]
    return join_entry_lines([*lines, *_write_sizes(chosen)])


def _write_accounts(facts: ClusterFacts, chosen: ClusterPartition) -> Iterator[str]:
    ours = [each for each in facts.accounts if not chosen.accounts or each in chosen.accounts]
    if chosen.accounts:
        fits = ", ".join(chosen.accounts[:_MOST])
        yield f"account: {quote_yaml_word((ours or list(chosen.accounts))[0])}  # partition {chosen.name} takes {fits}"
    elif ours:
        yield f"# account: {ours[0]}  # yours: {', '.join(ours[:_MOST])}; the default one without this line"


def _write_sizes(chosen: ClusterPartition) -> Iterator[str]:
    if not chosen.nodes:
        yield "cpus: 1"
        return
    usual = max(chosen.nodes, key=lambda each: each.count)
    cpus = max(1, min(_CPUS, usual.cpus))
    memory = usual.memory * cpus // max(1, usual.cpus)
    yield f"cpus: {cpus}"
    if memory >> 20:
        yield f"memory: {memory >> 20}MiB  # as much of a node as its CPUs are"
    gpus = list(dict.fromkeys(gpu for each in chosen.nodes for gpu in each.gpus))
    if gpus:
        kind, _, _ = gpus[0].rpartition(":")
        yield f"# gpus: {f'{kind}:1' if kind else '1'}  # a node has {' or '.join(gpus[:_MOST])}"


def describe_kinds(partition: ClusterPartition) -> str:
    """Return what a partition has, in a line: "2 nodes of 8 CPUs, 3.9 GiB, GPUs fake:2; jobs of 1h at most"."""
    kinds = []
    for each in partition.nodes[:_MOST]:
        nodes = f"{each.count} node{'s' * (each.count != 1)}"
        gpus = f", GPUs {' '.join(each.gpus)}" if each.gpus else ""
        kinds.append(f"{nodes} of {each.cpus} CPUs, {format_size(each.memory)}{gpus}")
    limit = f"; jobs of {format_duration(partition.most)} at most" if partition.most else ""
    only = f"; accounts {', '.join(partition.accounts[:_MOST])}" if partition.accounts else ""
    default = "; the default" if partition.default else ""
    return f"{' + '.join(kinds) or 'no node'}{limit}{only}{default}"
