"""A project whose machine has one runtime of containers, and an image at a registry of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.engines import serve_docker
from tests.registry import Registry, serve_registry

#: Seconds after which no container may be left.
LEFT = 10.0
LONG = "MONKEY_LONG" in os.environ
_ENGINE = """\
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=4096:8192"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
_STORAGE = '[storage]\ndriver = "{driver}"\ngraphroot = "{home}/graph"\nrunroot = "{home}/run"\n'
_PROGRAMS = ("sh", "cat", "dd", "echo", "env", "id", "ls", "ps", "sleep", "sort", "stat", "test", "touch", "true")
SPEC = """\
command: ["sh", "-c", {command}]
environment: {{image: "{image}"}}
parameters: {{i: {{range: [0, {jobs}]}}}}
outputs: []
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Run a registry with an image of a few programs."""
    files: dict[str, bytes | str] = {"bin/busybox": Path("/bin/busybox").read_bytes(), "inside": b"the image"}
    files |= {f"bin/{name}": "busybox" for name in _PROGRAMS}
    files |= {
        "etc/passwd": b"root:x:0:0::/:/bin/sh\n",
        "etc/group": b"root:x:0:\n",
        "tmp/.keep": b"",
        "proc/.keep": b"",
        "dev/.keep": b"",
    }
    with serve_registry(tmp_path_factory.mktemp("registry"), tls=True) as registry:
        registry.push("lab/tools", "v1", files, env=("KIND=of-the-image",))
        yield registry


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory, registry: Registry) -> Iterator[str]:
    """Run a Docker daemon, which knows the registry; yield its DOCKER_HOST."""
    home, storage = tmp_path_factory.mktemp("docker"), Path(tempfile.mkdtemp(prefix="monkey-", dir="/var/tmp"))
    with serve_docker(home, storage, registry.certificate) as url:
        yield url
    shutil.rmtree(storage)


RUNTIMES = {"podman": ["podman"], "docker": ["docker"], "charliecloud": ["ch-run", "ch-image"]}
needing = {name: pytest.param(name, marks=pytest.mark.needs(name)) for name in RUNTIMES}


@pytest.fixture(params=list(needing.values()))
def runtime(request: pytest.FixtureRequest, shop: Shop, registry: Registry, tmp_path: Path) -> Iterator[str]:
    """Let the shop's machine have one runtime alone."""
    cache = limit_runtimes(shop, registry, tmp_path, request.param)
    if request.param == "docker":
        shop.env["DOCKER_HOST"] = request.getfixturevalue("docker")
    yield request.param
    shop.kill_all()
    # The sweeper is gone, too: nothing else ends a stopped container of a daemon that lives.
    if request.param == "docker" and (left := list_containers(shop, "docker")):
        subprocess.run(["docker", "rm", "--force", *left], env=shop.env, capture_output=True, check=True)
    if request.param == "podman":
        # While the sweeper of a killed agent removes a container, podman refuses.
        reset = ["podman", "system", "reset", "--force"]
        until(
            lambda: not subprocess.run(reset, env=shop.env, capture_output=True).returncode, "podman has forgotten all"
        )
    shutil.rmtree(cache)


def limit_runtimes(shop: Shop, registry: Registry, tmp_path: Path, kind: str) -> Path:
    """Hide all runtimes but one from the shop's machine; return the directory of its cache and storage."""
    programs = tmp_path / "programs"
    programs.mkdir()
    hidden = {"podman", "docker", "apptainer", "singularity", "ch-run", "ch-image"}
    for name in RUNTIMES[kind]:
        # No link: charliecloud looks for its parts beside its programs.
        (programs / name).write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
        (programs / name).chmod(0o755)
    for directory in ("/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for program in Path(directory).iterdir():
            if program.name not in hidden and not os.path.lexists(programs / program.name):
                (programs / program.name).symlink_to(program)
    ours = shop.env["PATH"].partition(":")[0]
    # Not below /tmp, which runtimes treat in their own way; and short: where its own path is long, podman 4.3 waits
    # for 20 seconds at the end of each container.
    cache = tempfile.mkdtemp(prefix="monkey-", dir="/var/tmp")
    shop.env |= {"XDG_CACHE_HOME": cache, "PATH": f"{ours}:{programs}", "SSL_CERT_FILE": registry.certificate}
    shop.env |= {"REQUESTS_CA_BUNDLE": registry.certificate, "CONTAINERS_CONF": str(tmp_path / "engine.conf")}
    shop.env |= {"CONTAINERS_STORAGE_CONF": str(tmp_path / "storage.conf")}
    (tmp_path / "engine.conf").write_text(_ENGINE)
    (tmp_path / "storage.conf").write_text(_STORAGE.format(driver="overlay", home=cache))
    return Path(cache)


def podman(shop: Shop, *words: str) -> str:
    return subprocess.run(["podman", *words], env=shop.env, capture_output=True, text=True, check=True).stdout


def apply(shop: Shop, registry: Registry, command: str, *words: str, jobs: int = 1) -> None:
    image = f"{registry.name}/lab/tools:v1"
    shop.spec(SPEC.format(command=repr(command), image=image, jobs=jobs))
    shop.run("apply", *words)


VICTIMS = {
    "agent": ("monkey_agent.command_line",),
    "client": ("run --rm", "unshare"),
    "supervisor": ("supervisor.py",),
}
#: Each, any two, and all; CI takes a few.
SETS = ["agent", "client", "supervisor", "agent client", "agent supervisor", "client supervisor"]
SETS += ["agent client supervisor"]


def read_state(pid: int) -> str:
    """Return the letter of a process's state; "" for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return ""


def list_containers(shop: Shop, runtime: str) -> set[str]:
    """Return all containers that the engine itself knows, dead or alive."""
    if runtime == "charliecloud":
        return set()
    command = [runtime, "ps", "--all", "--quiet", "--no-trunc"]
    return set(subprocess.run(command, env=shop.env, capture_output=True, text=True, check=True).stdout.split())


def find_sleepers() -> set[int]:
    return {pid for pid, line in list_lines() if line.startswith("sleep 424")}


def find_all(text: str) -> set[int]:
    """Return the processes of this machine whose command line has a text."""
    return {pid for pid, line in list_lines() if text in line}


def list_lines() -> Iterator[tuple[int, str]]:
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
            yield int(directory.name), line.decode(errors="replace")


def belongs(pid: int, shop: Shop) -> bool:
    """Say whether a process is the shop's: it has the place of its state in its arguments or variables."""
    with contextlib.suppress(OSError):
        place = Path(f"/proc/{pid}")
        return shop.state.encode() in (place / "environ").read_bytes() + (place / "cmdline").read_bytes()
    return False
