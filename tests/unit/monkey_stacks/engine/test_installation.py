"""Finding Pulumi: on the PATH, at home, too old, nowhere."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey_stacks.engine import installation
from monkey_stacks.engine.installation import OLDEST, PINNED


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory that is the whole PATH, where Pulumi's home is also our own."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    # Whoever has a network would download it in earnest.
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    return tmp_path


def put(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho v{version}\n")
    path.chmod(0o755)
    return path


def refusal(said: list[str]) -> tuple[str, str]:
    try:
        installation.find_pulumi(said.append)
    except FleetError as exc:
        return exc.message, exc.hint or ""
    raise AssertionError("it found one")


@pytest.mark.needs("pulumi-library")
def test_one_on_the_path_comes_first(bare: Path) -> None:
    put(bare / "home/bin/pulumi", "3.999.0")
    found = installation.find_pulumi(pytest.fail)
    assert (found.path, str(found.version)) == (str(bare / "home/bin/pulumi"), "3.999.0")
    put(bare / "bin/pulumi", OLDEST)
    assert installation.find_pulumi(pytest.fail).path == str(bare / "bin/pulumi")


@pytest.mark.needs("pulumi-library")
def test_one_that_is_too_old_is_passed_over(bare: Path) -> None:
    put(bare / "bin/pulumi", "3.100.0")
    there = put(bare / f"home/versions/{PINNED}/bin/pulumi", PINNED)
    assert installation.find_pulumi(pytest.fail).path == str(there)


@pytest.mark.needs("pulumi-library")
def test_a_shell_calls_it_by_its_path_where_that_is_not_on_the_path(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_HOME", str(bare / "a home"))
    there = put(bare / "a home/bin/pulumi", PINNED)
    assert installation.name_pulumi() == f"'{there}'"
    old = put(bare / "bin/pulumi", "3.100.0")
    assert installation.name_pulumi() == f"'{there}'"
    put(old, PINNED)
    assert installation.name_pulumi() == "pulumi"


def test_without_the_library_a_plan_for_hosts_says_what_installs_it() -> None:
    code = "import sys; sys.modules['pulumi'] = None; from monkey_stacks.ssh import fleet, program"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert "FleetError: machines are made by Pulumi, whose library is not installed here" in last
    assert f"{sys.executable} -m pip install" in last and "[ssh]" in last


@pytest.mark.needs("pulumi-library")
def test_where_there_is_none_and_no_network_the_error_says_what_to_do(bare: Path) -> None:
    put(bare / "bin/pulumi", "3.100.0")
    said: list[str] = []
    with warnings.catch_warnings():
        # Pulumi's library leaves the script open that it could not fetch.
        warnings.simplefilter("ignore", ResourceWarning)
        message, hint = refusal(said)
        gc.collect()
    assert re.search(r"3\.100\.0.*get\.pulumi\.com cannot be reached", message)
    assert "https://www.pulumi.com/docs/install/" in hint
    assert said == [
        f"installing Pulumi {PINNED} into {bare}/home/versions/{PINNED} "
        f"({bare}/bin/pulumi is 3.100.0; {OLDEST} is the oldest that will do)"
    ]
