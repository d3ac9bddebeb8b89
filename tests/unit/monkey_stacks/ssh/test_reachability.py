"""Whether hosts can reach a store, as far as that can be told from here."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey_stacks.ssh.reachability import check_reachability, find_file_system


def test_a_directory_of_this_machine_is_none_of_others(tmp_path: Path) -> None:
    with pytest.raises(FleetError) as caught:
        check_reachability(str(tmp_path / "store"), ["localhost", "me@gpu1:2222", "gpu2"])
    assert caught.value.message.startswith("me@gpu1:2222, gpu2 cannot reach the store: ")
    assert "store: ssh://me@gpu1:2222/~/monkey-store" in (caught.value.hint or ""), "a line to write"


@pytest.mark.parametrize("hosts", [["localhost"], ["me@127.0.0.1:2222", "[::1]:22"]])
def test_this_machine_reaches_its_own(hosts: list[str], tmp_path: Path) -> None:
    check_reachability(str(tmp_path / "store"), hosts)


@pytest.mark.parametrize("url", ["s3://bucket/x", "ssh://host/~/store"])
def test_urls_are_for_the_hosts_to_try(url: str) -> None:
    check_reachability(url, ["gpu1"])


def test_the_file_system_is_that_of_what_is_there() -> None:
    assert find_file_system(Path("/proc/self")) == "proc"
    assert find_file_system(Path("/sys/not/there/yet")) == "sysfs"
