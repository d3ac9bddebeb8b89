"""Where pilots find the store: a bucket by its URL, a directory by its path on the shared file system."""

from __future__ import annotations

from pathlib import Path

from monkey.errors import FleetError
from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey.store.sftp.url import parse_sftp_url
from monkey_stacks import store_credentials
from monkey_stacks.ssh.reachability import is_shared


def place_store(name: str, slurm: SlurmSettings, store_url: str) -> str:
    """Return the store as pilots open it; "~" in it is the login node's. Raises FleetError where they could not.

    `name`: the provider's, for errors.
    """
    if slurm.store_path:
        return slurm.store_path
    scheme = store_url.partition("://")[0] if "://" in store_url else ""
    if scheme == "ssh":
        return _place_beside_login(name, slurm, store_url)
    if scheme:
        return store_credentials.strip_profile(store_url)
    if slurm.login or not is_shared(Path(store_url)):
        where = f"ssh://{slurm.login}/~/monkey-store" if slurm.login else "a directory on the shared file system"
        raise FleetError(
            f"{name}'s nodes cannot reach the store: {store_url} is a directory of this machine",
            hint=f"write store: {where}, or a bucket, into monkey.yaml; or store_path: beside type: slurm, where the "
            "nodes see this directory under that path",
        )
    return store_url


def _place_beside_login(name: str, slurm: SlurmSettings, store_url: str) -> str:
    target = parse_sftp_url(store_url)
    login = parse_ssh_host(slurm.login) if slurm.login else None
    if login is None or login.name.lower() != target.host.lower():
        raise FleetError(
            f"{name}'s nodes cannot reach the store: it is on {target.host}, and they have no key of yours",
            hint="write store_path: beside type: slurm, the path under which the nodes see that directory; or use a "
            "bucket",
        )
    return target.directory


def expand_home(path: str, home: str) -> str:
    """Return a path with the login node's home in it."""
    return f"{home}{path[1:]}" if path.startswith("~/") else path
