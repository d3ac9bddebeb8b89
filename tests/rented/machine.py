"""A machine of a cloud: a Debian that runs its user data as root, once it has booted, and knows nothing else."""

from __future__ import annotations

import contextlib
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.host_root import root, run
from tests.hosts import PATIENCE, Kind, Lab, Machine
from tests.rented.metadata import ADDRESS, Metadata

#: Where a directory that all machines share is seen on each, for the ledgers of their jobs.
SHARED = "/shared"
#: What cloud-init is for Amazon's images, and Google's own agent for theirs: the script comes from the metadata, and is
#: run by root, from a file.
_RUN_USER_DATA = f"""\
import os, subprocess, time, urllib.request
def ask(method, path, headers):
    request = urllib.request.Request("http://{ADDRESS}/" + path, headers=headers, method=method)
    return urllib.request.urlopen(request, timeout=5).read()
def user_data():
    if os.path.exists("/etc/google"):
        return ask("GET", "computeMetadata/v1/instance/attributes/startup-script", {{"Metadata-Flavor": "Google"}})
    token = ask("PUT", "latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds": "60"}}).decode()
    return ask("GET", "latest/user-data", {{"X-aws-ec2-metadata-token": token}})
while True:
    try:
        script = user_data()
        break
    except OSError:
        time.sleep(0.2)
os.makedirs("/var/lib/cloud", exist_ok=True)
with open("/var/lib/cloud/part-001", "wb") as file:
    file.write(script)
os.chmod("/var/lib/cloud/part-001", 0o700)
with open("/var/log/cloud-init-output.log", "ab") as log:
    subprocess.run(["/var/lib/cloud/part-001"], stdout=log, stderr=log, check=True)
"""
_UNIT = """\
[Unit]
After=network-online.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -I /usr/lib/run-user-data.py
[Install]
WantedBy=multi-user.target
"""


class Rented(Machine):
    """One machine. It is seen from outside like a host of a lab."""

    def __init__(self, lab: Lab, name: str, number: int, metadata: Metadata, environment: Mapping[str, str]) -> None:
        """Make its files; `environment`: what all of its units have: where the cloud's services are."""
        self.lab, self.name, self.kind = lab, name, Kind(number)
        self.address = f"{lab.network}.{number}"
        self.label = f"{lab.bridge}i{number}"
        self.root = (base := lab.base / name) / "root"
        self._base, self._process, self._environment = base, None, environment
        self.metadata = metadata
        self.shared = lab.base / "shared"
        self.shared.mkdir(exist_ok=True)
        self.shared.chmod(0o777)
        self.options = (f"--bind={self.shared}:{SHARED}",)
        self._furnish()

    def _furnish(self) -> None:
        for part in ("root", "upper", "work"):
            (self._base / part).mkdir(parents=True)
        layers = f"lowerdir={root()},upperdir={self._base}/upper,workdir={self._base}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, str(self.root))
        etc, units = self.root / "etc", self.root / "etc/systemd/system"
        (etc / "hostname").write_text(f"{self.name}\n")
        (etc / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} metadata.google.internal\n")
        network = f"[Match]\nName=host0\n[Network]\nAddress={self.address}/24\nGateway={self.lab.network}.1\n"
        (etc / "systemd/network/10-host0.network").write_text(f"{network}LinkLocalAddressing=no\n")
        for unit in ("ssh.service", "cron.service"):  # images have them, and nobody here asks them
            (units / "multi-user.target.wants" / unit).unlink()
        (self.root / "usr/lib/run-user-data.py").write_text(_RUN_USER_DATA)
        (units / "user-data.service").write_text(_UNIT)
        (units / "multi-user.target.wants/user-data.service").symlink_to("../user-data.service")
        if self.metadata.kind == "gcp":
            (etc / "google").mkdir()
        (etc / "systemd/system.conf.d").mkdir()
        said = " ".join(f'"{name}={value}"' for name, value in self._environment.items())
        (etc / "systemd/system.conf.d/cloud.conf").write_text(f"[Manager]\nDefaultEnvironment={said}\n")

    def start(self) -> None:
        """Begin to boot; the metadata are there as soon as its network is."""
        super().start()
        deadline, ours = time.monotonic() + PATIENCE, str(Path("/proc/self/ns/net").readlink())
        while (pid := self.leader) is None or self._network(pid) in ("", ours):
            assert time.monotonic() < deadline and self._process is not None and self._process.poll() is None, self.told
            time.sleep(0.02)
        self.metadata.serve(pid)

    @staticmethod
    def _network(pid: int) -> str:
        with contextlib.suppress(OSError):
            return str(Path(f"/proc/{pid}/ns/net").readlink())
        return ""

    @property
    def runs(self) -> bool:
        """Say whether it has power."""
        return self._process is not None and self._process.poll() is None

    @property
    def agent(self) -> Path:
        """The directory of its agent."""
        return self.root / "var/lib/monkey/agent"

    @property
    def told(self) -> str:
        """All that it said, for who wonders why it failed."""
        logs = ("cloud-init-output.log", "monkey-boot.log", "monkey-agent.log")
        paths = [self._base / "console", *(self.root / "var/log" / log for log in logs), self.agent / "agent.log"]
        found = []
        for path in paths:
            with contextlib.suppress(OSError):
                found.append(f"--- {path.name}\n{path.read_text(errors='replace')[-6000:]}")
        return "\n".join(found)

    def close(self) -> None:
        """End it and give back what it took."""
        self.metadata.close()
        super().close()
        shutil.rmtree(self._base, ignore_errors=True)
