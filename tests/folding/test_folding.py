"""The tests of `on_disk.py`, in a machine whose disk does not tell upper from lower case, nor Unicode forms."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.folding import on_disk
from tests.folding.machine import run_on_disk
from tests.own_kernel import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.needs("folding-disk")]

TESTS = sorted(name for name in vars(on_disk) if name.startswith("test_"))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Run them all in one machine; return test to what went wrong with each of its cases, "" for nothing."""
    place = tmp_path_factory.mktemp("machine")
    file = Path(on_disk.__file__).relative_to(PROJECT)
    options = ["-n", "0", "-p", "no:cacheprovider", "-q", "--junitxml=/run/dir/report.xml"]
    said = run_on_disk(place, [sys.executable, "-m", "pytest", *options, file])
    assert (place / "report.xml").exists(), said[-3000:]
    found: dict[str, list[str]] = {}
    for case in ElementTree.parse(place / "report.xml").iter("testcase"):
        wrong = "".join(f"{each.get('message')}\n{each.text}" for each in case if each.tag in ("failure", "error"))
        found.setdefault(case.get("name", "").partition("[")[0], []).append(wrong)
    return found


@pytest.mark.parametrize("name", TESTS)
def test_on_a_folding_disk(name: str, outcomes: dict[str, list[str]]) -> None:
    assert outcomes[name]
    assert not any(outcomes[name]), "\n".join(filter(None, outcomes[name]))
