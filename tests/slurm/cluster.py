"""A Slurm on two hosts of a lab that share a home: twin1 and twin2 are nodes, and twin1 is the login node, too.

Its users are unprivileged. What Slurm was asked is read from the controller's own log.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.host_root import USER
from tests.hosts import Lab, Machine

#: Seconds within which nodes must be idle, and the queue empty.
PATIENCE = 60.0
#: Where Slurm's daemons keep what they write, on each host.
STATE, LOGS = "var/lib/slurm", "var/log/slurm"
#: CPUs of a node: more than the machine has, so that a few pilots find room.
CPUS = 8
#: Seconds for which a job that is queued again must wait; 120 if nothing is said.
_EXPIRE_SECONDS = 5
#: Seconds after which a node that does not answer is down.
_TIMEOUT_SECONDS = 10
_CONFIG = """
ClusterName=lab
SlurmctldHost=twin1({address})
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=cred_expire={expire}
CredType=cred/munge
StateSaveLocation=/{state}/slurmctld
SlurmdSpoolDir=/{state}/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/{logs}/slurmctld.log
SlurmdLogFile=/{logs}/slurmd.log
DebugFlags=Protocol
LogTimeFormat=iso8601_ms
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
SlurmdTimeout={timeout}
KillWait=10
MailProg=/bin/true
EnforcePartLimits=ALL
GresTypes=gpu
{nodes}
PartitionName=low Nodes=twin[1-2] Default=YES MaxTime=1:00:00 DefaultTime=5 PriorityTier=1 GraceTime=0 State=UP
PartitionName=kind Nodes=twin[1-2] MaxTime=1:00:00 DefaultTime=5 PriorityTier=1 GraceTime=20 State=UP
PartitionName=high Nodes=twin[1-2] MaxTime=1:00:00 DefaultTime=5 PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=tiny Nodes=twin1 MaxTime=2 PriorityTier=1 State=UP
PartitionName=closed Nodes=twin[1-2] MaxTime=1:00:00 AllowAccounts=physics State=UP
"""
_NODE = "NodeName={name} NodeAddr={address} CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} "
_NODE += "ThreadsPerCore=1 RealMemory=4000 Gres=gpu:fake:2 Weight={weight} State=UNKNOWN"
#: What squeue, sinfo, sstat and `scontrol show job` ask, once each.
_ASKED = "REQUEST_(?:JOB_INFO|JOB_USER_INFO|JOB_INFO_SINGLE|JOB_STEP_INFO|NODE_INFO|NODE_INFO_SINGLE)"
_QUERY = re.compile(rf"^\[(\S+?)\] .*received opcode ({_ASKED}) from \S+ uid (\d+)", re.MULTILINE)
#: The daemons, in the order of their start.
_UNITS = ("munge", "slurmctld", "slurmd")


@dataclass(frozen=True)
class Query:
    """A question that the controller was asked; `at` in seconds of the wall clock."""

    at: float
    what: str


class Cluster:
    """The cluster: started, asked, hurt, and ended."""

    def __init__(self, lab: Lab) -> None:
        """Boot its hosts."""
        self.login, self.other = self.nodes = tuple(lab("twin1", "twin2"))

    @property
    def home(self) -> Path:
        """The home that all nodes share, seen from outside."""
        return self.login.home

    @property
    def user(self) -> int:
        """The number of the user who works on it."""
        return self.login.owner[0]

    def start(self) -> None:
        """Start all daemons, and wait until both nodes are idle."""
        nodes = "\n".join(
            # The node that is no login node is taken first: it is the one that tests hurt.
            _NODE.format(name=each.name, address=each.address, cpus=CPUS, weight=1 + (each is self.login))
            for each in self.nodes
        )
        told = {"expire": _EXPIRE_SECONDS, "timeout": _TIMEOUT_SECONDS, "state": STATE, "logs": LOGS, "nodes": nodes}
        for node in self.nodes:
            for number in range(2):
                os.mknod(node.root / STATE / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            etc = node.root / "etc/slurm"
            (etc / "slurm.conf").write_text(_CONFIG.format(address=self.login.address, **told))
            (etc / "gres.conf").write_text(f"Name=gpu Type=fake File=/{STATE}/gpu[0-1]\n")
        for node in self.nodes:
            node.within("systemctl", "start", "munge")
        self.login.within("systemctl", "start", "slurmctld")
        for node in self.nodes:
            self.start_node(node)
        self._await_idle()

    def _await_idle(self) -> None:
        self._await(lambda: self.run("sinfo", "-h", "-p", "low", "-o", "%T %D").split() == ["idle", "2"], "nodes idle")

    def change_settings(self, lines: Mapping[str, str]) -> None:
        """Put lines of slurm.conf in place of others: programs heed them at once, daemons after `restart`."""
        for node in self.nodes:
            file = node.root / "etc/slurm/slurm.conf"
            text = file.read_text()
            for before, later in lines.items():
                text = text.replace(f"{before}\n", f"{later}\n")
            file.write_text(text)

    def restart(self) -> None:
        """Start all daemons again; nothing must run."""
        self.login.within("systemctl", "restart", "slurmctld")
        for node in self.nodes:
            node.within("systemctl", "restart", "slurmd")
        self._await_idle()

    def run(self, *words: str) -> str:
        """Run a program of Slurm's as an administrator; it must succeed."""
        return self.login.within(*words)

    def queue(self, format_: str = "%i %j %T %r") -> list[str]:
        """Return a line for each job of the user's that is queued or runs, by the controller's own count."""
        return self.run("squeue", "-h", "-r", "-u", USER, "-o", format_).splitlines()

    def list_queries(self, since: float) -> list[Query]:
        """Return what the user's programs asked since then, by the controller's own log; not administrators' ones."""
        found = []
        for at, what, user in _QUERY.findall((self.login.root / LOGS / "slurmctld.log").read_text()):
            seconds = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
            if seconds >= since and int(user) == self.user:
                found.append(Query(seconds, what))
        return found

    def kill_node(self, node: Machine) -> None:
        """Kill a node's daemon; what it started lives on."""
        node.within("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "slurmd")

    def start_node(self, node: Machine) -> None:
        """Start a node's daemon, if it does not run."""
        node.within("systemctl", "start", "slurmd")

    @contextlib.contextmanager
    def taken(self, *nodes: Machine, by: Sequence[str] = ("-p", "high")) -> Iterator[None]:
        """Have nodes work for somebody with precedence, by these options: whatever else runs there is preempted."""
        words = ("sbatch", "--parsable", *by, "--exclusive", "-D", "/", "-o", "/dev/null")
        names = [f"--nodelist={','.join(node.name for node in nodes)}", f"--nodes={len(nodes)}"]
        job = self.run(*words, *names, "--wrap=sleep 3600").strip()
        try:
            yield
        finally:
            self.run("scancel", job)

    def cancel_all(self) -> None:
        """Cancel all jobs, and wait until none is left."""
        self.run("scancel", "--full", "--user", USER)
        self._await(lambda: not self.queue(), "queue empty")

    def close(self) -> None:
        """End all jobs, then the daemons; nothing of them is left on the hosts."""
        for node in self.nodes:
            node.mend()
            self.start_node(node)
        try:
            self.cancel_all()
        finally:
            for node in self.nodes:
                node.within("systemctl", "stop", *reversed(_UNITS))
                node.within("systemctl", "reset-failed", *_UNITS, code=None)
                kept = [f"/{STATE}/slurmd", f"/{STATE}/slurmctld", f"/{LOGS}"]
                node.within("find", *kept, "-mindepth", "1", "-delete")
                made = [f"/{STATE}/gpu0", f"/{STATE}/gpu1", "/etc/slurm/slurm.conf", "/etc/slurm/gres.conf"]
                node.within("rm", "-f", *made)

    def list_remains(self) -> list[str]:
        """Return processes and files of Slurm's on the hosts, which a closed cluster has none of."""
        places = (f"/{STATE}", f"/{LOGS}", "/etc/slurm/slurm.conf")
        search = ("find", *places, "-mindepth", "1", "(", "-type", "f", "-o", "-type", "c", ")")
        found = [node.within(*search, code=None) for node in self.nodes]
        found += [line for node in self.nodes for line in node.processes("root").splitlines() if "slurm" in line]
        return [each for each in found if each]

    def _await(self, what: Callable[[], bool], message: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not what():
            log = (self.login.root / LOGS / "slurmctld.log").read_text()[-3000:]
            assert time.monotonic() < deadline, f"{message}: not within {PATIENCE:.0f} s\n{self.run('squeue')}\n{log}"
            time.sleep(0.1)


@contextlib.contextmanager
def run_cluster(lab: Lab) -> Iterator[Cluster]:
    """Have a Slurm on the lab's twins for a while."""
    cluster = Cluster(lab)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
