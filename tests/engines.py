"""Engines of containers with storage of their own: nothing of this machine's is used."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

#: Seconds in which a daemon must answer, and end.
_PATIENCE_SECONDS = 30.0


@contextlib.contextmanager
def serve_docker(home: Path, storage: Path, certificate: str) -> Iterator[str]:
    """Run a Docker daemon with its state in `home` and images in `storage`; yield its DOCKER_HOST.

    It trusts registries by `certificate`, and makes no network.
    """
    url = f"unix://{home}/docker.sock"
    words = ["--data-root", str(storage), "--exec-root", str(home / "exec"), "--pidfile", str(home / "docker.pid")]
    words += ["--iptables=false", "--bridge=none", "--storage-driver=vfs", "--default-ulimit=nofile=1024:4096"]
    with (home / "docker.log").open("wb") as log:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SSL_CERT_FILE": certificate, "HOME": str(home)}
        daemon = subprocess.Popen(["dockerd", "--host", url, *words], stdout=log, stderr=log, env=env)
    try:
        until = time.monotonic() + _PATIENCE_SECONDS
        while subprocess.run(["docker", "--host", url, "version"], capture_output=True).returncode:
            assert daemon.poll() is None, (home / "docker.log").read_text()
            assert time.monotonic() < until, "the daemon does not answer"
            time.sleep(0.1)
        yield url
    finally:
        daemon.terminate()
        try:
            daemon.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        _unmount((f"{home}/", f"{storage}/"))


def _unmount(places: tuple[str, ...]) -> None:
    """Unmount what the daemon left mounted below some directories, the inner first."""
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in reversed([point for point in points if point.startswith(places)]):
        subprocess.run(["umount", "--lazy", point], check=True)
