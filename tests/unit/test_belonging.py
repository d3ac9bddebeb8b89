"""Tests that belong to a file are found by imports and names; those of a change, by packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.belonging import find_tests, find_tests_since

HOUSE = ["tests/unit/test_house.py", "tests/unit/test_house_names.py"]
TREE = {
    "monkey/__init__.py": "",
    "monkey/store/__init__.py": "",
    "monkey/store/disk.py": "",
    "monkey/store/names.py": "",
    "monkey/plan/__init__.py": "",
    "monkey/plan/plan.py": "def plan():\n    from monkey.store import disk\n",
    "agent/monkey_agent/__init__.py": "",
    "agent/monkey_agent/claim.py": "import monkey.errors\n",
    "tests/shop.py": "from monkey.store.disk import open_disk\n",
    "tests/site.py": "import tests.shop\n",
    "tests/acceptance/test_sales.py": "from tests.site import Site\n",
    "tests/acceptance/test_plan_comment.py": "",
    "tests/unit/agent/test_claim.py": "",
    "tests/unit/store/test_names.py": "from monkey.store.names import fold\n",
    "tests/unit/test_lease.py": "import monkey_agent.claim\n",
    "tests/page/test_look.py": "STYLE = 'web/page.css'\n",
    "web/page.css": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "All")
    return tmp_path


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True)


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("monkey/store/disk.py", ["tests/acceptance/test_sales.py"]),
        ("monkey/store/names.py", ["tests/unit/store/test_names.py"]),
        ("agent/monkey_agent/claim.py", ["tests/unit/agent/test_claim.py", "tests/unit/test_lease.py"]),
        ("tests/site.py", ["tests/acceptance/test_sales.py"]),
        ("tests/unit/test_lease.py", ["tests/unit/test_lease.py"]),
        ("web/page.css", ["tests/page/test_look.py"]),
        ("monkey/plan/plan.py", []),
    ],
)
def test_tests_of_a_file_import_it_or_have_its_name(root: Path, file: str, tests: list[str]) -> None:
    assert find_tests([file], root) == sorted([*tests, *HOUSE])


def test_a_change_touches_its_package_and_who_imports_it(root: Path) -> None:
    assert find_tests_since("HEAD", root) == HOUSE
    (root / "monkey/store/disk.py").write_text("SIZE = 1\n")
    assert find_tests_since("HEAD", root) == [
        "tests/acceptance/test_plan_comment.py",
        "tests/acceptance/test_sales.py",
        "tests/unit/store/test_names.py",
        *HOUSE,
    ]


def test_a_new_file_and_one_that_is_gone_are_changes(root: Path) -> None:
    (root / "agent/monkey_agent/claim.py").unlink()
    (root / "agent/monkey_agent/start.py").write_text("")
    (root / "tests/unit/test_start.py").write_text("from monkey_agent import start\n")
    assert find_tests_since("HEAD", root) == [*HOUSE, "tests/unit/test_start.py"]
