"""The plan names what becomes code though git does not track it, and what does not as it may hold credentials."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

from monkey.apply.planning import make_plan
from monkey.cli.render.plan_lines import format_plan
from monkey.cli.terminal.text import Terminal
from monkey.plan.change import Plan
from monkey.plan.text.markdown import format_markdown
from monkey.plan.text.plan_document import serialize_plan
from tests.unit.apply.small_project import apply, opened

KEY = f"AKIA{'Q' * 16}"


def make_work_tree(root: Path, git: str) -> None:
    """Track all that is there, and add what git does not track."""
    for order in ("init", "-q"), ("add", "."):
        subprocess.run([git, "-C", str(root), *order], check=True)
    for name in ("new.py", "lib/a.py", *(f"runs/{number}.txt" for number in range(12))):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    (root / "notes.py").write_text(f"id = '{KEY}'\n")
    (root / ".git-credentials").write_text("https://me:password@example.com\n")


async def plan_once(root: Path) -> Plan:
    async with opened(root) as world:
        return (await make_plan(world, [])).plan


def test_the_plan_names_untracked_files_and_credentials(root: Path, require: Callable[[str], str]) -> None:
    make_work_tree(root, require("git"))
    plan = asyncio.run(plan_once(root))
    said = "\n".join(format_plan(plan, Terminal(width=80)))
    assert "with 14 files that git does not track: lib/a.py, new.py, runs/ (12 files)\n" in said
    assert "warning: 2 files may hold credentials, and are no part of the code:\n" in said
    assert "      .git-credentials (by its name), notes.py (holds an AWS key id)\n" in said
    [sweep] = serialize_plan(plan)["sweeps"]
    assert len(sweep["code"]["untracked"]) == 14 and "runs/3.txt" in sweep["code"]["untracked"]
    assert sweep["code"]["credentials"] == [
        {"path": ".git-credentials", "why": "by its name"},
        {"path": "notes.py", "why": "holds an AWS key id"},
    ]
    comment = format_markdown(plan)
    assert "lib/a.py, new.py, runs/ (12 files)" in comment and "notes.py (holds an AWS key id)" in comment


def test_nothing_of_a_credential_reaches_the_store(root: Path, require: Callable[[str], str]) -> None:
    make_work_tree(root, require("git"))

    async def main() -> None:
        async with opened(root) as world:
            plan = (await apply(world)).plan
            assert {"new.py", "train.py"} <= set(plan.sweeps[0].desired.code_files)
            assert not {"notes.py", ".git-credentials"} & set(plan.sweeps[0].desired.code_files)

    asyncio.run(main())
    said = "\n".join(format_plan(asyncio.run(plan_once(root)), Terminal(width=80), everything=True))
    assert "does not track" not in said, "they are in the store already"
    assert "may hold credentials" in said


def test_a_tracked_key_is_code_and_a_warning(root: Path, require: Callable[[str], str]) -> None:
    (root / "fixture.py").write_text(f"id = '{KEY}'\n")
    make_work_tree(root, require("git"))
    said = "\n".join(format_plan(asyncio.run(plan_once(root)), Terminal(width=None)))
    assert "warning: fixture.py, which holds an AWS key id, is code, as git tracks it" in said
