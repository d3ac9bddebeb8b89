"""Histories, as real repositories have them, and where the last commit of each stands."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.history.authorship import name_author
from monkey.apply.history.spec_places import place_specs_in_history
from monkey.apply.orders import cancel_sweep, resume_sweep
from monkey.apply.planning import make_plan
from monkey.apply.world.desired_state import LoadedSpec, desire_specs, list_spec_files, read_specs
from monkey.errors import SweepRefused
from monkey.plan.commits.place import CommitPlace
from monkey.plan.commits.refusals import check_refusals
from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import read_sweep
from monkey.spec.project.project import load_project
from tests.unit.apply.small_project import SPEC, apply, opened, write_project

#: What each history begins with: the spec's state 1, on main.
STORIES = {
    "nothing moved": ("apply", "same"),
    "a later commit": ("edit 2, apply, edit 3", "ahead"),
    "a merge": ("branch pr, edit 2, apply, switch main, note, merge pr", "ahead"),
    "a squash": ("branch pr, edit 2, edit 3, apply, switch main, note, squash pr", "merged"),
    "a squash, and the branch is gone": ("branch pr, edit 2, apply, switch main, note, squash pr, clone", "merged"),
    "a squash, and more since": ("branch pr, edit 2, apply, switch main, note, squash pr, edit 3", "merged"),
    "a squash that was reverted": ("branch pr, edit 2, apply, switch main, note, squash pr, edit 1, clone", "merged"),
    "a rebase": ("branch pr, edit 2, note, apply, switch main, edit 3, edit 1, rebase pr, clone", "merged"),
    "an executable and a link": ("branch pr, odd files, apply, switch main, note, squash pr, clone", "merged"),
    "another branch": ("branch pr, edit 2, apply, switch main, note", "apart"),
    "another branch with an older state": ("edit 2, branch pr, edit 1, apply, switch main, note", "apart"),
    "that, and the branch is gone": ("edit 2, branch pr, edit 1, apply, switch main, note, clone", "apart"),
    "a branch that lacks what main has": ("branch pr, switch main, edit 2, edit 1, apply, switch pr, edit 3", "apart"),
    "an older commit": ("edit 2, apply, back", "behind"),
    "a force push": ("edit 2, apply, amend 3", "behind"),
    "a force push elsewhere": ("edit 2, apply, amend 3, clone", "behind"),
    "A, B, A, and a late run of B": ("edit 2, edit 1, apply, back", "behind"),
    "that in a clone without the last": ("edit 2, edit 1, apply, back, clone", "behind"),
    "a shallow clone": ("edit 2, apply, note, shallow", "unknown"),
    "a shallow clone that is deepened": ("edit 2, apply, note, shallow, in CI", "ahead"),
    "a shallow squash": ("branch pr, edit 2, apply, switch main, note, squash pr, shallow, in CI", "merged"),
    "a partial squash": ("branch pr, edit 2, apply, switch main, note, squash pr, edit 3, partial", "unknown"),
    "a partial squash in CI": ("branch pr, edit 2, apply, switch main, squash pr, edit 3, partial, in CI", "merged"),
    "a dirty tree": ("edit 2, write 3, apply, commit", "ahead"),
    "a dirty tree that was never committed": ("branch pr, note, write 2, apply, drop, switch main, note", "apart"),
    "a squash, and nobody knows main": ("forget main, branch pr, edit 2, apply, switch main, note, squash pr", "apart"),
    "no git": ("no git, apply", "ahead"),
    "git came later": ("no git, apply, init", "ahead"),
}  # fmt: skip


class Story:
    """A repository, and what was applied from it. Each step takes an hour."""

    def __init__(self, root: Path) -> None:
        self.root, self.now, self.seen, self.ci = root, time.time() - 100 * 3600, ObservedProject(), False
        write_project(root)
        self.write("1")
        (root / "monkey.yaml").write_text("project: test\ngit: {branch: main}\n")
        self.git("init", "-q")
        self.git("config", "uploadpack.allowFilter", "true")  # as forges have it: a clone may lack old files
        self.commit("first")

    def git(self, *arguments: str, at: Path | None = None) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{int(self.now)} +0000")
        done = subprocess.run(
            ["git", "-C", at or self.root, *who, *arguments], capture_output=True, text=True, env=os.environ | dates
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, text: str, *options: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", text, *options)

    def write(self, state: str) -> None:
        (self.root / "specs/small.yaml").write_text(SPEC.replace("[1, 2, 3]", f"[7, 8, {state}]"))
        (self.root / "train.py").write_text(f"print({state})\n")

    def wanted(self) -> list[LoadedSpec]:
        project = load_project(self.root)
        return desire_specs(project, read_specs(project, list_spec_files(project)))

    def step(self, step: str) -> None:
        self.now += 3600
        verb, _, word = step.partition(" ")
        match verb:
            case "edit":
                self.write(word)
                self.commit(f"state {word}")
            case "write":
                self.write(word)
            case "odd":
                (self.root / "tool.sh").write_text("#!/bin/sh\n")
                (self.root / "tool.sh").chmod(0o755)
                (self.root / "link.py").symlink_to("train.py")
                self.write("2")
                self.commit("odd files")
            case "note" | "commit":
                (self.root / "NOTES.md").write_text(str(self.now))
                self.commit("note")
            case "forget":
                (self.root / "monkey.yaml").write_text("project: test\n")
                self.commit("main is not named")
            case "amend":
                self.write(word)
                self.commit("amended", "--amend")
            case "in":
                self.ci = True
            case "no":
                (self.root / ".git").rename(self.root.with_name("no git"))
            case "init":
                self.root.with_name("no git").rename(self.root / ".git")
            case "apply":
                self.apply()
            case _:
                self.turn(verb, word)

    def turn(self, verb: str, word: str) -> None:
        """Do what git alone does."""
        match verb:
            case "branch":
                self.git("checkout", "-q", "-b", word)
            case "switch":
                self.git("checkout", "-q", word)
            case "drop":
                self.git("checkout", "-q", ".")
            case "back":
                self.git("reset", "-q", "--hard", "HEAD^")
            case "merge":
                self.git("merge", "-q", "--no-ff", "-m", "merge", word)
            case "squash":
                self.git("merge", "-q", "--squash", word)
                self.commit("squashed")
            case "rebase":
                self.git("cherry-pick", f"main..{word}")
            case "clone" | "shallow" | "partial":
                there, less = self.root.with_name(verb), {"shallow": ["--depth=1"], "partial": ["--filter=blob:none"]}
                self.git("clone", "-q", "--single-branch", *less.get(verb, []), f"file://{self.root}", str(there))
                self.root = there
            case _:
                raise AssertionError(verb)

    def apply(self) -> None:
        (want,) = self.wanted()
        of, git = want.desired, dict(want.desired.git) if want.desired.git else None
        at = datetime.fromtimestamp(self.now, UTC).isoformat(timespec="seconds")
        revision = Revision(
            of.name, of.recipe, of.settings, of.table, want.text, of.source, dict(of.code_files), git, "ann", at
        )
        self.seen = ObservedProject({of.name: ObservedSweep(1, revision, 1)})

    def place(self) -> CommitPlace:
        (want,) = place_specs_in_history(load_project(self.root), self.wanted(), self.seen)
        assert (want.desired.misplaced is not None) == want.desired.place.refused
        return want.desired.place


@pytest.mark.parametrize("steps, verdict", STORIES.values(), ids=list(STORIES))
def test_where_a_commit_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: str, verdict: str) -> None:
    (tmp_path / "project").mkdir()
    story = Story(tmp_path / "project")
    for step in steps.split(", "):
        story.step(step)
    if story.ci:
        monkeypatch.setenv("CI", "true")
    assert story.place() == verdict


def count_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: Story) -> int:
    """Return how often git is asked for a plan, by a program of its name in front of it."""
    aside = tmp_path / "bin"
    aside.mkdir(exist_ok=True)
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (aside / "git").write_text(f'#!/bin/sh\necho "$@" >> {aside}/calls\nexec {real} "$@"\n')
    (aside / "git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{aside}:{os.environ['PATH']}")
        story.place()
    return len((aside / "calls").read_text().splitlines())


def test_an_ordinary_plan_asks_git_once_more_than_its_files_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    story = Story(tmp_path / "project")
    story.step("edit 2")
    story.step("apply")
    before = count_calls(tmp_path, monkeypatch, story)
    story.step("edit 3")
    (tmp_path / "bin/calls").unlink()
    assert count_calls(tmp_path, monkeypatch, story) == before + 1


def test_cancelled_by_a_person_it_stays_so_for_ci(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(root)

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            await cancel_sweep(world, "small", "too dear")
            story.step("edit 2")
        monkeypatch.setenv("CI", "true")
        async with opened(root) as world:
            refusal = (await apply(world)).plan.sweeps[0].refusal
            assert refusal is not None and refusal.text == f"stays cancelled by {name_author()}: too dear"
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.head == 2 and state.cancelled == "too dear"
            monkeypatch.setenv("GITLAB_CI", "true")
            monkeypatch.setenv("GITLAB_USER_LOGIN", "bob")
            await resume_sweep(world, "small")
            assert (await apply(world)).plan.changes
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.cancelled is None and state.revision is not None and state.revision.author == "bob"

    asyncio.run(main())


def test_refused_sweep_is_shown_and_left_and_a_reason_changes_it(root: Path) -> None:
    story = Story(root)
    story.step("edit 2")
    second = story.git("rev-parse", "HEAD")

    async def main() -> None:
        async with opened(root) as world:
            await apply(world)
            story.step("back")
            first = story.git("rev-parse", "HEAD")
            planned = await make_plan(world, [])
            (sweep,) = planned.plan.sweeps
            assert sweep.refusal is not None and second[:10] in sweep.refusal.text and not planned.plan.changes
            assert "--force" in sweep.refusal.hint
            await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
            with pytest.raises(SweepRefused, match=second[:10]):
                check_refusals(planned.plan)
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.head == 1
            forced = await make_plan(world, [], force="the new one diverges")
            await execute_plan(world, forced.plan, forced.wanted, lambda what, done: None)
            state = await read_sweep(world.at, world.keys, world.signers, "small")
            assert state.revision is not None and state.revision.force == "the new one diverges"
            assert state.revision.git is not None and state.revision.git["commit"] == first

    asyncio.run(main())
