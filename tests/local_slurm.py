"""A real Slurm on this machine: a controller and two nodes, by Debian's packages, without root's paths or systemd."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.services import free_port

#: Seconds within which nodes must be idle.
PATIENCE = 60.0
_SBIN = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_CONFIG = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.sock
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool-%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_min_interval=100000,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
KillWait=10
MailProg=/bin/true
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=2000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=2000
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=1:00:00 State=UP
PartitionName=tiny Nodes=n1 MaxTime=3 State=UP
"""


def is_installed() -> bool:
    """Say whether Slurm is here, and may be run by us."""
    programs = ("munged", "slurmctld", "slurmd", "sbatch")
    return os.geteuid() == 0 and all(shutil.which(name, path=_SBIN) for name in programs)


class LocalSlurm:
    """The cluster; `environment` is what its clients need."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {"SLURM_CONF": str(home / "slurm.conf")}

    def run(self, *words: str) -> str:
        """Run a program of Slurm's; it must succeed."""
        env = {**os.environ, **self.environment}
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    def queue(self) -> list[str]:
        """Return the names of all jobs that are queued or run, by the controller's own count."""
        return self.run("squeue", "-h", "-r", "-o", "%j").split()

    def start(self) -> None:
        """Start it, and wait until both nodes are idle."""
        os.chmod(self.home, 0o755)  # noqa: PTH101
        for name in ("state", "spool-n1", "spool-n2"):
            (self.home / name).mkdir()
        ports, host = [free_port() for _ in range(3)], socket.gethostname().partition(".")[0]
        (self.home / "slurm.conf").write_text(_CONFIG.format(home=self.home, ports=ports, host=host))
        key = self.home / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        places = {"socket": "munge.sock", "pid-file": "munged.pid", "log-file": "munged.log", "seed-file": "munge.seed"}
        munge = [f"--{option}={self.home / name}" for option, name in places.items()]
        for command in (
            ["munged", "--force", f"--key-file={key}", *munge],
            *(["slurmctld", "-c"], ["slurmd", "-N", "n1"], ["slurmd", "-N", "n2"]),
        ):
            env = {**os.environ, **self.environment, "PATH": _SBIN}
            subprocess.run(command, env=env, check=True, timeout=PATIENCE, capture_output=True)
        until = time.monotonic() + PATIENCE
        while self.run("sinfo", "-h", "-p", "all", "-o", "%T %D").split() != ["idle", "2"]:
            assert time.monotonic() < until, (self.home / "slurmctld.log").read_text()[-3000:]
            time.sleep(0.1)

    def stop(self) -> None:
        """End its jobs, then its daemons."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            self.run("scancel", "--full", "-u", "root")
            until = time.monotonic() + 20
            while self.queue() and time.monotonic() < until:
                time.sleep(0.1)
        for name in ("slurmd-n1", "slurmd-n2", "slurmctld", "munged"):
            with contextlib.suppress(OSError, ValueError):
                end_process(int((self.home / f"{name}.pid").read_text()))


def end_process(pid: int) -> None:
    """End a daemon, and wait until it is gone. Raises ProcessLookupError once it is."""
    until = time.monotonic() + 20
    os.kill(pid, signal.SIGTERM)
    while time.monotonic() < until:
        os.kill(pid, 0)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def run_slurm(home: Path) -> Iterator[LocalSlurm]:
    """Have a Slurm in this directory, whose path is short: it holds a socket."""
    slurm = LocalSlurm(home)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
