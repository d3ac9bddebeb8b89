"""A real Kubernetes on this machine: etcd, API server, controllers, scheduler; `nodes` adds what runs pods."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.kubernetes.programs import find_program
from tests.services import free_port

#: Seconds within which the whole must be ready: it starts among other tests.
PATIENCE = 300.0
#: A user with all rights, and one who has those that a role gives him.
ADMIN, LIMITED = "admin", "limited"


class LocalKubernetes:
    """The cluster. `environment` is what kubectl needs."""

    def __init__(self, home: Path, address: str = "127.0.0.1") -> None:
        """Use the directory `home`, whose path is short: it holds sockets. The API server listens at `address`."""
        self.home, self.address = home, address
        self.tokens = {name: secrets.token_hex(16) for name in (ADMIN, LIMITED)}
        self.port = free_port()
        self.environment = {"KUBECONFIG": str(home / "kubeconfig")}
        self._etcd, self._peer, self._ports = free_port(), free_port(), [free_port(), free_port()]
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The API server's."""
        return f"https://{self.address}:{self.port}"

    def kubectl(self, *words: str, given: str = "", check: bool = True) -> str:
        """Run kubectl with all rights; return what it said."""
        command = [find_program("kubectl"), f"--context={ADMIN}", *words]
        env = {**os.environ, **self.environment}
        done = subprocess.run(command, input=given, env=env, capture_output=True, text=True, timeout=PATIENCE)
        assert not check or done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def count(self, namespace: str, kinds: str = "jobs,pods,secrets") -> list[str]:
        """Return what a namespace has of these kinds, by the API server's own word."""
        return self.kubectl("-n", namespace, "get", kinds, "-o", "name").split()

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        """Return the pods of a namespace."""
        found: list[dict[str, Any]] = json.loads(self.kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
        return found

    def start(self) -> None:
        """Start the control plane, and wait until it answers."""
        for name in ("pki", "etcd", "log"):
            (self.home / name).mkdir()
        key, public = self.home / "pki/sa.key", self.home / "pki/sa.pub"
        for words in (["genrsa", "-out", str(key), "2048"], ["rsa", "-in", str(key), "-pubout", "-out", str(public)]):
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        self.write_login(self.home / "kubeconfig", self.tokens)
        self._start_plane()

    def _start_plane(self) -> None:
        home, etcd = self.home, f"http://127.0.0.1:{self._etcd}"
        lines = [f"{self.tokens[ADMIN]},admin,admin,system:masters", f"{self.tokens[LIMITED]},limited,limited,people"]
        lines += [f"{self.node_token(n)},system:node:n{n},n{n},system:nodes" for n in (1, 2)]
        (home / "pki/tokens.csv").write_text("\n".join(lines) + "\n")
        peer = f"http://127.0.0.1:{self._peer}"
        self.run_daemon(
            *("etcd", "--unsafe-no-fsync", f"--data-dir={home / 'etcd'}", f"--initial-cluster=default={peer}"),
            *(f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
        )
        self.start_api()
        login = [f"--kubeconfig={home / 'kubeconfig'}", "--leader-elect=false", "--bind-address=127.0.0.1"]
        login += [f"--cert-dir={home / 'pki'}", "--profiling=false"]
        self.run_daemon(
            *("kube-controller-manager", *login, f"--secure-port={self._ports[0]}"),
            *(f"--service-account-private-key-file={home / 'pki/sa.key'}", "--use-service-account-credentials=true"),
            *("--node-monitor-period=1s", "--node-monitor-grace-period=15s"),
        )
        self.run_daemon("kube-scheduler", *login, f"--secure-port={self._ports[1]}")

    def start_api(self) -> None:
        """Start the API server, and wait until it is ready."""
        pki = self.home / "pki"
        self.run_daemon(
            *("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self._etcd}", f"--bind-address={self.address}"),
            *(f"--secure-port={self.port}", f"--cert-dir={pki}", f"--token-auth-file={pki / 'tokens.csv'}"),
            *(f"--service-account-key-file={pki / 'sa.pub'}", f"--service-account-signing-key-file={pki / 'sa.key'}"),
            *("--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=Node,RBAC"),
            *("--enable-admission-plugins=NodeRestriction", "--service-cluster-ip-range=10.96.0.0/24"),
            *("--enable-priority-and-fairness=false", "--profiling=false", "--advertise-address=10.96.0.250"),
            "--kubelet-preferred-address-types=InternalIP",
        )
        self.await_state(lambda: "ok" in self.kubectl("get", "--raw=/readyz", check=False), "the API server is ready")

    def node_token(self, number: int) -> str:
        """Return the token of a node."""
        return f"node-{number}-{self.tokens[ADMIN]}"

    def write_login(self, path: Path, tokens: dict[str, str]) -> None:
        """Write a kubeconfig with a context for each token, the first the current one."""
        cluster = {"server": self.url, "insecure-skip-tls-verify": True}
        told = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name}} for name in tokens],
            "current-context": next(iter(tokens)),
        }
        path.write_text(json.dumps(told))

    def run_daemon(self, program: str, *words: str, name: str = "") -> None:
        """Start a program in the background."""
        name = name or program
        with (self.home / "log" / name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                [find_program(program), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home
            )

    def end_daemon(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a program that was started, and wait until it is gone."""
        process = self._running.pop(name)
        process.send_signal(how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def await_state(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until it is so, while all programs run."""
        until = time.monotonic() + PATIENCE
        while not reached():
            for name, process in self._running.items():
                assert process.poll() is None, f"{name}: {(self.home / 'log' / name).read_text()[-2000:]}"
            assert time.monotonic() < until, what
            time.sleep(0.2)

    def stop(self) -> None:
        """End everything, the last first."""
        for name in reversed(list(self._running)):
            with contextlib.suppress(OSError):
                self.end_daemon(name)


@contextlib.contextmanager
def run_kubernetes(home: Path) -> Iterator[LocalKubernetes]:
    """Have a control plane in this directory."""
    cluster = LocalKubernetes(home)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
