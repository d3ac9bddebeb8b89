"""Plans of what changed since a commit, and of what a merge would be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.apply.planning import make_plan
from monkey.apply.tree_planning import plan_changes_since, plan_merge_result
from monkey.errors import PlanError
from monkey.plan.change import Plan
from monkey.plan.digest import compute_plan_digest
from tests.git_command import git
from tests.unit.apply.small_project import SPEC, apply, opened


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")


def write(root: Path, name: str, values: str = "[1, 2]", more: str = "") -> None:
    text = SPEC.replace("small", name).replace("[1, 2, 3]", values)
    (root / "specs" / f"{name}.yaml").write_text(text + more)


def begin(root: Path) -> None:
    """Make a repository with two sweeps besides `small`, on main, and a branch."""
    (root / ".gitignore").write_text(".monkey/\ndata/\n")
    (root / "data").mkdir()
    (root / "data" / "x").write_text("x")
    write(root, "b")
    write(root, "c", more="code: {include: [train.py]}\ndatasets: {d: data}\n")
    git(root, "init", "-q")
    commit(root)
    git(root, "checkout", "-qb", "feature")


def names(plan: Plan) -> list[str]:
    return [sweep.name for sweep in plan.sweeps]


def test_only_specs_that_differ_since_the_branches_parted_are_planned(root: Path) -> None:
    begin(root)

    async def main() -> None:
        async with opened(root) as world:
            git(root, "checkout", "-q", "main")
            await apply(world)
            nothing, empty = (await plan_changes_since(world, "main")).plan, Plan((), project=world.project.name)
            assert names(nothing) == [] and compute_plan_digest(nothing) == compute_plan_digest(empty)
            write(root, "c", "[7]", "code: {include: [train.py]}\ndatasets: {d: data}\n")
            commit(root)
            git(root, "checkout", "-q", "feature")
            write(root, "b", "[1, 2, 3]")
            (root / "specs" / "small.yaml").rename(root / "specs" / "tiny.yaml")
            (root / "specs" / "tiny.yaml").write_text(SPEC.replace("name: small", "name: tiny"))
            commit(root)
            plan = (await plan_changes_since(world, "main", prune=True)).plan
            assert names(plan) == ["b", "tiny"], "c changed on main alone"
            (gone,) = plan.gone
            assert (gone.name, gone.source, gone.pruned) == ("small", "specs/small.yaml", True)
            assert (await make_plan(world, [])).plan.gone == (), "it was applied from another branch"

    asyncio.run(main())


def test_dataset_and_broken_spec_of_the_other_tree(root: Path) -> None:
    begin(root)

    async def main() -> None:
        async with opened(root) as world:
            assert names((await plan_changes_since(world, "main")).plan) == [], "the data is found in the work tree"
            write(root, "b", more="priority: [1]\n")
            commit(root)
            broken = git(root, "rev-parse", "HEAD")
            write(root, "b")
            commit(root)
            assert names((await plan_changes_since(world, broken)).plan) == ["b"], "it was wrong: no error of now"
            with pytest.raises(PlanError, match="expected a commit"):
                await plan_changes_since(world, "origin/main")

    asyncio.run(main())


def test_plan_onto_is_the_plan_after_the_merge(root: Path) -> None:
    begin(root)

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            write(root, "b", "[1, 2, 3]")
            commit(root)
            git(root, "checkout", "-q", "main")
            write(root, "c", "[7]", "code: {include: [train.py]}\ndatasets: {d: data}\n")
            (root / "train.py").write_text("print('of main')\n")
            commit(root)
            git(root, "checkout", "-q", "feature")
            onto = (await plan_merge_result(world, "main")).plan
            assert compute_plan_digest(onto) != compute_plan_digest((await make_plan(world, [])).plan)
            git(root, "checkout", "-q", "main")
            git(root, "merge", "-q", "--no-edit", "feature")
            merged = (await make_plan(world, [])).plan
            assert compute_plan_digest(onto) == compute_plan_digest(merged)
            assert [sweep.jobs.counts for sweep in onto.sweeps] == [sweep.jobs.counts for sweep in merged.sweeps]

    asyncio.run(main())


def test_plan_onto_in_a_shallow_clone_says_what_it_cannot_see(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(root)
    git(root, "commit", "-q", "--allow-empty", "-m", "what a clone of two commits has in common")
    git(root, "branch", "-f", "main", "feature")
    write(root, "b", "[1, 2, 3]")
    commit(root)
    git(root, "checkout", "-q", "main")
    write(root, "small", "[7]")
    commit(root)
    git(root, "checkout", "-q", "feature")

    def clone(name: str, depth: int) -> Path:
        there = tmp_path / "clones" / name
        git(tmp_path, "clone", "-q", "--no-single-branch", f"--depth={depth}", f"file://{root}", str(there))
        (there / "data").mkdir()
        (there / "data" / "x").write_text("x")
        return there

    async def main() -> None:
        async with opened(clone("one", 1)) as world:
            with pytest.raises(PlanError) as raised:
                await plan_merge_result(world, "origin/main")
            assert raised.value.hint.startswith("this clone is shallow, and may lack the commit at which they parted")
            monkeypatch.setenv("CI", "true")
            assert (await plan_merge_result(world, "origin/main")).plan.warnings == ()
            monkeypatch.delenv("CI")
        async with opened(clone("two", 2)) as world:
            assert "this clone is shallow" in (await plan_merge_result(world, "origin/main")).plan.warnings[-1]

    asyncio.run(main())
