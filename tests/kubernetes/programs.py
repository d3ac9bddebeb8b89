"""Kubernetes' own programs, built from its Go modules into the user's cache."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from tests.services import CACHE, build_go

#: The version of tests/tools/kubernetes/go.mod.
KUBERNETES = "kubernetes@1.34.4"
#: The control plane; and what a node runs besides.
PLANE, NODE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler"), ("kubelet",)
#: Debian's programs that the two need.
PLANE_PROGRAMS, NODE_PROGRAMS = ("etcd", "kubectl"), ("containerd", "runc", "ctr", "gcc", "ip")
_SBIN = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def api_server_program() -> Path:
    """Return where the API server is, or would be."""
    return CACHE / KUBERNETES / PLANE[0]


def find_program(name: str) -> str:
    """Return where a program is."""
    ours = CACHE / KUBERNETES / name
    found = str(ours) if ours.exists() else shutil.which(name, path=_SBIN)
    assert found is not None, name
    return found


def has_plane() -> bool:
    """Say whether a control plane can be started here."""
    return all((CACHE / KUBERNETES / name).exists() for name in PLANE) and _are_here(PLANE_PROGRAMS)


def has_nodes() -> bool:
    """Say whether nodes can be started here, too."""
    built = (CACHE / KUBERNETES / "kubelet").exists() and has_plane()
    # Kubelets of this version that find cgroups of version 1 take them; containers need root.
    return built and os.geteuid() == 0 and _are_here(NODE_PROGRAMS) and Path("/sys/fs/cgroup/cpuset").is_dir()


def _are_here(names: tuple[str, ...]) -> bool:
    return all(shutil.which(name, path=_SBIN) for name in names)


def install_kubernetes() -> None:
    """Build it: aside, then renamed. Raises OSError and CalledProcessError."""
    aside = CACHE / f"{KUBERNETES}.{os.getpid()}"
    aside.mkdir(parents=True)
    version = KUBERNETES.partition("@")[2]
    major, minor, _ = version.split(".")
    says = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in says.items()]
    try:
        for name in (*PLANE, *NODE):
            build_go("kubernetes", aside / name, f"k8s.io/kubernetes/cmd/{name}", " ".join(flags), CGO_ENABLED="0")
        with contextlib.suppress(FileExistsError, OSError):  # somebody else was faster
            aside.rename(CACHE / KUBERNETES)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


#: As `tests.forge_programs.PROGRAMS`.
PROGRAMS = {KUBERNETES: (api_server_program, install_kubernetes, ("go",))}
#: Program → the Debian package that has it.
PACKAGES = {
    "etcd": "etcd-server",
    "kubectl": "kubernetes-client",
    **dict.fromkeys(("containerd", "ctr"), "containerd"),
    "runc": "runc",
    "ip": "iproute2",
}
