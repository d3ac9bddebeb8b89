"""Which mounts a store may be on, by the kernel's list of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.errors import StoreUnsafe
from monkey.store.directory.network_mount import (
    check_network_mount,
    describe_store_mount,
    find_mount_by_text,
    find_network_mount,
    list_network_mounts,
)

DEFAULT = "rw,vers=3,rsize=1048576,hard,nolock,proto=tcp,timeo=600,retrans=2,sec=sys,mountaddr=10.99.0.1"
UNSAFE = "rw,vers=3,acregmin=120,acregmax=120,acdirmin=120,acdirmax=120,hard,nocto,nolock,proto=tcp"


def write_mounts(tmp_path: Path, options: str, type_: str = "nfs", place: str = "/mnt") -> Path:
    """Write the kernel's list: a local disk, and a mount with the device of `tmp_path`."""
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 259:999 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
        f"31 21 {number} / {place} rw,relatime - {type_} filer:/export/my\\040lab {options}\n"
    )
    return mounts


@pytest.mark.parametrize(
    ("options", "type_"),
    [
        (DEFAULT, "nfs"),
        (f"{DEFAULT},nocto", "nfs"),
        (UNSAFE.replace("nocto", "acl"), "nfs"),
        (UNSAFE.replace("=120", "=60"), "nfs"),
        (UNSAFE.replace("vers=3", "vers=4.1"), "nfs4"),
        ("rw,nocto,acregmax=120", "ext4"),
    ],
)
def test_mount_that_sees_what_others_write_may_have_a_store(tmp_path: Path, options: str, type_: str) -> None:
    mount = check_network_mount(str(tmp_path / "store"), write_mounts(tmp_path, options, type_))
    assert (mount is not None) is type_.startswith("nfs")


@pytest.mark.parametrize("options", [UNSAFE, f"{DEFAULT},nocto,acregmax=61", f"{DEFAULT},nocto,acdirmax=600"])
def test_mount_that_believes_its_cache_for_too_long_is_refused(tmp_path: Path, options: str) -> None:
    with pytest.raises(StoreUnsafe) as refused:
        check_network_mount(str(tmp_path / "not/yet/there"), write_mounts(tmp_path, options))
    assert "expected an NFS mount that sees what other machines write" in refused.value.message
    assert "filer:/export/my lab on /mnt" in refused.value.message
    assert options in refused.value.message
    assert refused.value.hint is not None
    assert "'actimeo=60'" in refused.value.hint


def test_mount_is_described(tmp_path: Path) -> None:
    mounts = write_mounts(tmp_path, f"{DEFAULT},nocto")
    found = find_network_mount(str(tmp_path), mounts)
    assert found is not None
    assert found.describe() == "NFS mount, server filer"
    assert describe_store_mount(str(tmp_path), mounts) == (
        " (NFS mount, server filer)",
        "mount it without 'nocto': what other machines write is seen late",
    )
    assert describe_store_mount("s3://bucket", mounts) == ("", "")
    assert describe_store_mount(str(tmp_path), write_mounts(tmp_path, DEFAULT)) == (" (NFS mount, server filer)", "")


def test_place_of_a_path_is_guessed_by_its_text(tmp_path: Path) -> None:
    mounts = write_mounts(tmp_path, DEFAULT, place="/mnt/my\\040lab")
    assert find_mount_by_text("/mnt/my lab/store", mounts) == list_network_mounts(mounts)[0]
    assert find_mount_by_text("/mnt/my lab", mounts) is not None
    assert find_mount_by_text("/mnt/my labour", mounts) is None
    assert list_network_mounts(tmp_path / "none") == []
    assert find_network_mount("/", tmp_path / "none") is None
