"""Nodes of a Kubernetes on this machine: a containerd and a kubelet each, that run pods for real."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.kubernetes import image
from tests.kubernetes.local_kubernetes import LocalKubernetes
from tests.kubernetes.programs import find_program
from tests.services import free_port

#: The image of pods, and of what holds their namespaces.
PYTHON, PAUSE = "localhost/python:1", "localhost/pause:1"
#: An image with a file of its own besides.
VARIANT = "localhost/variant:1"
#: Where the API server and kubelets listen: an interface of our own, since a node's address is none of 127.0.0.0/8.
ADDRESS, LINK = "10.214.0.1", "mk8s0"
NODES = ("n1", "n2")
_CGROUPS = Path("/sys/fs/cgroup")
_LOCK = Path("/tmp/monkey-kubernetes.lock")
_CONTAINERD = """
version = 2
root = "{home}/root"
state = "{home}/state"
[grpc]
  address = "{home}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{home}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


class Nodes:
    """The nodes of a cluster. Their pods use the machine's own network."""

    def __init__(self, cluster: LocalKubernetes) -> None:
        self.cluster = cluster

    def home(self, node: str) -> Path:
        """Return the directory of a node."""
        return self.cluster.home / node

    def start(self) -> None:
        """Start them, and wait until they are ready."""
        images = self.cluster.home / "images"
        images.mkdir()
        image.write_python_images(PYTHON, VARIANT, images / "python.tar")
        image.write_pause_image(PAUSE, images / "pause.tar", images)
        for node in NODES:
            self._start_runtime(node)
        for node in NODES:
            self.cluster.await_state(lambda node=node: self._ctr(node, "version"), "containerd answers")
            for path in images.glob("*.tar"):
                assert self._ctr(node, "images", "import", str(path))
            for name in (VARIANT, PAUSE):
                assert self._ctr(node, "images", "tag", name, self.pin(name))
        for node in NODES:
            self.start_kubelet(node)
        self.await_ready()

    def await_ready(self) -> None:
        """Wait until both are ready."""
        ready = ("get", "nodes", "-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
        self.cluster.await_state(lambda: self.cluster.kubectl(*ready).split() == ["True"] * 2, "both nodes are ready")

    def _start_runtime(self, node: str) -> None:
        home = self.home(node)
        (home / "cni").mkdir(parents=True)
        (home / "containerd.toml").write_text(_CONTAINERD.format(home=home, pause=PAUSE))
        plugin = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "loopback"}]}
        (home / "cni/10-none.conflist").write_text(json.dumps(plugin))
        self.cluster.run_daemon("containerd", "-c", str(home / "containerd.toml"), name=f"containerd-{node}")

    def pin(self, name: str) -> str:
        """Return an image of the nodes by its digest, as specs name it."""
        command = [*self._spell_ctr(NODES[0]), "images", "list", f"name=={name}"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        [digest] = re.findall(r"sha256:[0-9a-f]{64}", said)
        return f"{name.rpartition(':')[0]}@{digest}"

    def _ctr(self, node: str, *words: str) -> bool:
        return subprocess.run([*self._spell_ctr(node), *words], capture_output=True).returncode == 0

    def _spell_ctr(self, node: str) -> list[str]:
        return [find_program("ctr"), "-a", str(self.home(node) / "containerd.sock"), "-n", "k8s.io"]

    def start_kubelet(self, node: str) -> None:
        """Start the kubelet of a node."""
        home, root = self.home(node), f"mk8s-{node}"
        for controller in (path for path in _CGROUPS.iterdir() if path.name != "unified"):
            (controller / root).mkdir(exist_ok=True)
        for file in ("cpus", "mems"):
            value = (_CGROUPS / f"cpuset/cpuset.{file}").read_text()
            (_CGROUPS / f"cpuset/{root}/cpuset.{file}").write_text(value)
        self.cluster.write_login(home / "kubeconfig", {node: self.cluster.node_token(NODES.index(node) + 1)})
        said = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "address": ADDRESS,
            "port": free_port(),
            "healthzPort": 0,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{root}",
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "failCgroupV1": False,
            "containerRuntimeEndpoint": f"unix://{home}/containerd.sock",
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "nodeStatusUpdateFrequency": "2s",
            # How often pods get what Secrets have.
            "syncFrequency": "5s",
            "nodeLeaseDurationSeconds": 8,
            "oomScoreAdj": 0,
            "resolvConf": "",
            "podLogsDir": f"{home}/logs",
        }
        (home / "kubelet.json").write_text(json.dumps(said))
        self.cluster.run_daemon(
            *("kubelet", f"--config={home / 'kubelet.json'}", f"--kubeconfig={home / 'kubeconfig'}"),
            *(f"--root-dir={home / 'kubelet'}", f"--cert-dir={home / 'pki'}", f"--hostname-override={node}"),
            f"--node-ip={ADDRESS}",
            name=f"kubelet-{node}",
        )

    def kill_node(self, node: str) -> None:
        """Have a node die at once: its kubelet first, then all processes of its pods."""
        self.cluster.end_daemon(f"kubelet-{node}", signal.SIGKILL)
        self._kill_pods(node)

    def _kill_pods(self, node: str) -> None:
        until = time.monotonic() + 30
        while pids := _list_pids(node):
            assert time.monotonic() < until, pids
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def stop(self) -> None:
        """End the nodes, their pods first, and take away mounts and cgroups."""
        for node in NODES:
            with contextlib.suppress(KeyError):
                self.cluster.end_daemon(f"kubelet-{node}")
            self._kill_pods(node)
            with contextlib.suppress(KeyError):
                self.cluster.end_daemon(f"containerd-{node}")
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for mount in sorted((each for each in mounts if each.startswith(f"{self.cluster.home}/")), reverse=True):
            subprocess.run(["umount", "-l", mount], check=True)
        for node in NODES:
            for directory in _CGROUPS.glob(f"*/mk8s-{node}"):
                for path in sorted(directory.rglob("*"), reverse=True):
                    if path.is_dir():
                        path.rmdir()
                directory.rmdir()


def _list_pids(node: str) -> list[int]:
    found = []
    for directory in (_CGROUPS / "pids").glob(f"mk8s-{node}"):
        for path in directory.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found += [int(pid) for pid in path.read_text().split()]
    return found


@contextlib.contextmanager
def run_nodes(home: Path) -> Iterator[Nodes]:
    """Have a whole Kubernetes in this directory, whose path is short. Another process's is waited for.

    Two would share the network interface and the cgroups: each would take those of the other away.
    """
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _run_nodes_alone(home) as nodes:
            yield nodes


@contextlib.contextmanager
def _run_nodes_alone(home: Path) -> Iterator[Nodes]:
    ip = find_program("ip")
    subprocess.run([ip, "link", "delete", LINK], capture_output=True)  # of a run that was killed
    subprocess.run([ip, "link", "add", LINK, "type", "bridge"], check=True)
    nodes = Nodes(LocalKubernetes(home, ADDRESS))
    try:
        subprocess.run([ip, "address", "add", f"{ADDRESS}/24", "dev", LINK], check=True)
        subprocess.run([ip, "link", "set", LINK, "up"], check=True)
        nodes.cluster.start()
        nodes.start()
        yield nodes
    finally:
        try:
            nodes.stop()
        finally:
            nodes.cluster.stop()
            subprocess.run([ip, "link", "delete", LINK], check=True)
