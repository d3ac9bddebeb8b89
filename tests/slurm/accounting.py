"""A Slurm that counts: accounts and qualities of service in a database, and preemption by these.

Debian's slurmdbd and MariaDB are installed on the login node for the time, from packages that this machine's apt
fetches: the root of all hosts stays small.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.acceptance.shop import until
from tests.host_root import USER
from tests.slurm.cluster import Cluster

_PACKAGES = ("slurmdbd", "mariadb-server")
_UNITS = ("slurmdbd", "mariadb")
#: Seconds within which packages must be installed.
_PATIENCE = 300.0
#: Lines of slurm.conf that are others while the cluster counts.
_COUNTING = {
    "PreemptType=preempt/partition_prio": "PreemptType=preempt/qos",
    "AccountingStorageType=accounting_storage/none": (
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=twin1\n"
        "AccountingStorageEnforce=associations,limits,qos"
    ),
}
_DATABASE = """\
AuthType=auth/munge
DbdHost=twin1
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
"""
_RIGHTS = """\
CREATE DATABASE slurm_acct_db;
CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
"""


@contextlib.contextmanager
def keep_accounts(cluster: Cluster, **graces: int) -> Iterator[None]:
    """Have the cluster count for a while.

    The user has the account `lab` and these qualities, each with so many seconds of grace; `high` preempts them.
    """
    _install(cluster)
    login = cluster.login
    rules = login.root / "etc/slurm/slurmdbd.conf"
    rules.write_text(_DATABASE)
    rules.chmod(0o600)
    login.within("chown", "slurm:", "/etc/slurm/slurmdbd.conf")
    try:
        login.within("systemctl", "restart", "mariadb")
        login.within("mariadb", "-e", _RIGHTS)
        login.within("systemctl", "restart", "slurmdbd")
        cluster.change_settings(_COUNTING)
        until(lambda: _answers(cluster), "the database answers", 60, step=0.2)
        _tell(cluster, "add", "cluster", "lab")
        _tell(cluster, "add", "account", "lab")
        for name, seconds in graces.items():
            _tell(cluster, "add", "qos", name, f"GraceTime={seconds}")
        _tell(cluster, "add", "qos", "high", f"Preempt={','.join(graces)}")
        _tell(
            cluster, "add", "user", USER, "account=lab", f"qos={','.join(graces)}", f"DefaultQOS={next(iter(graces))}"
        )
        _tell(cluster, "add", "user", "root", "account=lab", "qos=high", "DefaultQOS=high")
        cluster.restart()
        yield
    finally:
        cluster.cancel_all()
        cluster.change_settings({later: before for before, later in _COUNTING.items()})
        cluster.restart()
        login.within("systemctl", "stop", *_UNITS, code=None)
        rules.unlink()


def _install(cluster: Cluster) -> None:
    """Install the database: fetched here by what the host's root has already, since a host reaches no mirror."""
    root = cluster.login.root
    with tempfile.TemporaryDirectory() as fetched:
        Path(fetched, "partial").mkdir()
        places = (f"Dir::State::status={root}/var/lib/dpkg/status", f"Dir::Cache::archives={fetched}")
        options = [word for place in (*places, "Debug::NoLocking=1") for word in ("-o", place)]
        command = ["apt-get", "-y", "-q", "--no-install-recommends", "--download-only", *options, "install", *_PACKAGES]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        there = root / "var/cache/fetched"
        shutil.copytree(fetched, there)
    packages = [f"/var/cache/fetched/{path.name}" for path in there.glob("*.deb")]
    install = ("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--force-unsafe-io", "-i", *packages)
    # Some are taken only once others are set up: dpkg does not sort them, and apt would look for a mirror.
    cluster.login.within(*install, code=None, patience=_PATIENCE)
    cluster.login.within(*install, patience=_PATIENCE)
    shutil.rmtree(there)


def _answers(cluster: Cluster) -> bool:
    return "Cluster" in cluster.login.within("sacctmgr", "show", "cluster", code=None)


def _tell(cluster: Cluster, *words: str) -> None:
    cluster.run("sacctmgr", "-i", "-Q", *words)
