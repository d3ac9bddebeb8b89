"""The lock has what pyproject.toml asks for, CI installs it, and licences and vulnerabilities are decided."""

from __future__ import annotations

import importlib.metadata
import json
import re

from packaging.utils import canonicalize_name

from tests import pythons
from tests.dependencies import (
    LEFT_OUT,
    LOCK,
    ROOT,
    Audit,
    find_closure,
    is_accepted,
    judge_audit,
    list_declared,
    list_licences,
    read_decisions,
    read_licence,
    read_lock,
)


def test_the_lock_has_each_dependency_at_a_version_that_satisfies_it() -> None:
    locked = {**read_lock(), **read_lock(pythons.UV_LOCK)}
    wrong = [
        f"{each}: the lock has {', '.join(map(str, found)) or 'none'} (`invoke lock`)"
        for each in list_declared()
        if not (found := locked.get(canonicalize_name(each.name), []))
        or not all(each.specifier.contains(pin.version, prereleases=True) for one in found for pin in one.specifier)
    ]
    assert not wrong, "\n".join(wrong)
    assert LEFT_OUT not in read_lock()


def test_each_package_of_the_lock_has_one_version_and_hashes() -> None:
    for path in (LOCK, pythons.UV_LOCK):
        entries = re.findall(r"^(\S.*?) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", path.read_text(), re.M)
        assert len(entries) == sum(len(found) for found in read_lock(path).values()) > 0
        for found in read_lock(path).values():
            assert all([pin.operator for pin in each.specifier] == ["=="] for each in found)
            assert len(found) == 1 or all(each.marker for each in found)


def test_what_the_lock_was_made_for_is_what_users_may_have() -> None:
    """One lock for all Pythons: where a version depends on Python, exactly one of them holds for each."""
    for version in ("3.11.2", "3.11.14", "3.12.1", "3.13.0"):
        about = {"python_version": version.rpartition(".")[0], "python_full_version": version, "sys_platform": "linux"}
        for name, found in read_lock().items():
            held = [each for each in found if each.marker is None or each.marker.evaluate(about)]
            assert len(held) <= 1, f"{name} on {version}"


def test_ci_installs_nothing_but_the_lock_before_what_newcomers_do() -> None:
    installs = re.findall(r"pip install -q (.*)", (ROOT / ".ci/run").read_text())
    uv, locked, ours, newcomer = installs
    assert uv == "--require-hashes -r .ci/uv.txt"
    assert locked == "--require-hashes -r .ci/requirements.txt"
    assert ours == "--no-deps --no-build-isolation -e ."
    assert newcomer.startswith("-e '.[test]' &&") and newcomer in (ROOT / "README.md").read_text()


def test_licences_of_the_base_install_are_accepted_or_decided() -> None:
    decided = read_decisions()["licences"]
    found = {name: read_licence(importlib.metadata.metadata(name)) for name in find_closure("monkey-sweep")}
    open_ = {name for name, licence in found.items() if not is_accepted(licence, decided["accepted"])}
    assert open_ == decided["decided"].keys(), {name: found.get(name) for name in open_ ^ decided["decided"].keys()}
    assert all(len(reason) > 20 for reason in decided["decided"].values())


def test_unknown_and_copyleft_licences_are_not_accepted() -> None:
    accepted = read_decisions()["licences"]["accepted"]
    for licence in ("", "unknown", "GPL-3.0-or-later", "MIT AND LGPL-2.1-only", "Apache-2.0 WITH GPL-exception"):
        assert not is_accepted(licence, accepted), licence
    assert is_accepted("(Apache-2.0 OR MIT) AND BSD-3-Clause", accepted)
    assert {"monkey-sweep", "click"} <= {canonicalize_name(name) for name, _, _ in list_licences()}


def test_an_audit_fails_for_what_is_known_and_not_decided() -> None:
    known = {"id": "PYSEC-2099-1", "aliases": ["CVE-2099-1"], "fix_versions": ["2.0"], "description": "…"}
    packages = [{"name": "a", "version": "1.0", "vulns": [known]}, {"name": "b", "version": "1.0", "vulns": []}]
    said = json.dumps({"dependencies": packages, "fixes": []})
    assert judge_audit(said, "", {}) == Audit(("a 1.0: PYSEC-2099-1 (fixed in 2.0)",))
    assert judge_audit(said, "", {"CVE-2099-1": "a reason"}) == judge_audit(said, "", {"PYSEC-2099-1": "…"}) == Audit()


def test_an_audit_that_was_not_made_is_no_clean_one() -> None:
    offline = judge_audit("", "Traceback …\nrequests.exceptions.ConnectionError: pypi.org does not answer\n", {})
    assert offline == Audit(missing="requests.exceptions.ConnectionError: pypi.org does not answer")
    skipped = [{"name": name, "skip_reason": "Dependency not found on PyPI"} for name in ("a", "b")]
    said = judge_audit(json.dumps({"dependencies": [*skipped, {"name": "c", "version": "1", "vulns": []}]}), "", {})
    assert said == Audit(missing="the advisories say nothing of 2 of 3 packages (a, b)")
