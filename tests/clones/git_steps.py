"""What three people do with git, at random: edits, commits, pushes, pulls, branches, and merges as forges do them."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
from collections import Counter
from pathlib import Path

from tests.clones.person import Person
from tests.clones.second_reader import MAIN, PROJECT, read_wanted
from tests.verb_forks import VerbServer

#: Few values: what was before comes again, and must not be taken for the same plan.
NAMES, VALUES = ("a", "b", "c"), (3, 7, 9)


def write_spec(root: Path, name: str, values: list[int], retries: int) -> None:
    """Write a spec as JSON, a value a line: git merges lines."""
    spec = {"name": name, "command": f"sh {name}.sh {{i}}", "code": {"include": [f"{name}.sh"]}}
    spec |= {"max_retries": retries, "parameters": {"i": sorted(set(values))}}
    (root / "specs" / f"{name}.yaml").write_text(json.dumps(spec, indent=1) + "\n")


class GitSteps:
    """Three clones of one remote, and the steps that git alone takes."""

    def __init__(self, base: Path, seed: int, server: VerbServer) -> None:
        """Make the remote with three specs, and the clones."""
        self.dice, self.counts = random.Random(seed), Counter[str]()
        self.store, self.remote = base / "store", base / "remote"
        subprocess.run(["git", "init", "-q", "--bare", "-b", MAIN, self.remote], check=True)
        first = Person("alice", base, self.remote, server)
        first.tries("checkout", "-qb", MAIN)
        (first.root / "specs").mkdir()
        (first.root / ".gitignore").write_text(".monkey/\n")
        (first.root / "monkey.yaml").write_text(f"project: {PROJECT}\nstore: {self.store}\n")
        for name in NAMES:
            self._begin_spec(first.root, name)
        self._commit(first, "three specs")
        first.git("push", "-q", "-u", "origin", MAIN)
        first.git("remote", "set-head", "origin", MAIN)
        self.people = [first, *(Person(name, base, self.remote, server) for name in ("bob", "carol"))]

    def _commit(self, person: Person, text: str) -> None:
        person.git("add", "-A")
        person.git("commit", "-qm", text, "--allow-empty")

    def _settle(self, person: Person) -> None:
        """Undo what was begun and cannot be: a merge with conflicts, or one after which a spec is none."""
        for what in ("merge", "rebase"):
            person.tries(what, "--abort")
        person.git("reset", "-q", "--hard")
        person.git("clean", "-qfd")

    def _sound(self, person: Person) -> bool:
        with contextlib.suppress(ValueError, OSError):
            return all(len({*want.values}) == len(want.values) for want in read_wanted(person.root).values())
        return False

    def _begin_spec(self, root: Path, name: str) -> None:
        (root / f"{name}.sh").write_text("# 0\n")
        write_spec(root, name, [3, 7], 0)

    def _step_edit(self, person: Person) -> None:
        name, there = self.dice.choice(NAMES), read_wanted(person.root)
        path, what = person.root / "specs" / f"{name}.yaml", self.dice.choice("++++--rcxbbb")
        if name not in there:
            write_spec(person.root, name, self.dice.sample(VALUES, 2), 0)
        elif what == "x" and len(there) > 1:
            path.unlink()
        elif what == "b":  # back to where all began
            self._begin_spec(person.root, name)
        elif what == "c":
            (person.root / f"{name}.sh").write_text(f"# {self.dice.randrange(3)}\n")
        elif what == "r":
            write_spec(person.root, name, [*there[name].values], self.dice.randrange(3))
        else:
            values = {*there[name].values} ^ {self.dice.choice(VALUES)}
            write_spec(person.root, name, [*values] or [0], there[name].retries)
        if self.dice.random() < 0.7:
            self._step_commit(person)

    def _step_commit(self, person: Person) -> None:
        if self.dice.random() < 0.2:
            (person.root / "README.md").write_text(f"{self.dice.random()}\n")
        self._commit(person, "more")

    def _step_push(self, person: Person) -> None:
        person.tries("push", "-q", "origin", "HEAD")

    def _step_pull(self, person: Person) -> None:
        self._settle(person)
        person.git("fetch", "-q", "--prune")
        how = self.dice.choice([["merge", "-q", "--ff-only"], ["merge", "-q"], ["rebase", "-q"]])
        at = person.git("rev-parse", "HEAD")
        if not person.tries(*how, f"origin/{MAIN}") or not self._sound(person):
            self._settle(person)
            person.git("reset", "-q", "--hard", f"origin/{MAIN}" if person.branch == MAIN else at)

    def _branch_off(self, person: Person) -> None:
        self._go_to_main(person)
        person.git("checkout", "-q", "-B", f"pr-{person.name}-{self.dice.randrange(2)}")
        for _ in range(self.dice.choice([1, 1, 2])):
            self._step_edit(person)
        if self.dice.random() < 0.8:
            person.tries("push", "-q", "--force", "origin", "HEAD")

    def _go_to_main(self, person: Person) -> None:
        self._settle(person)
        person.git("fetch", "-q", "--prune")
        person.git("checkout", "-q", "-B", MAIN, f"origin/{MAIN}")

    def _step_switch(self, person: Person) -> None:
        self._settle(person)
        branches = person.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
        person.git("checkout", "-q", self.dice.choice(branches))

    def _step_integrate(self, person: Person) -> None:
        """Merge a pushed branch into main as a forge does: by a merge, by a squash, or by a rebase."""
        self._settle(person)
        person.git("fetch", "-q", "--prune")
        branches = [
            name
            for name in person.git("for-each-ref", "--format=%(refname:short)", "refs/remotes/origin").splitlines()
            if "/pr-" in name
        ]
        if not branches:
            return
        chosen, how = self.dice.choice(branches), self.dice.choice(["merge", "squash", "rebase"])
        person.git("checkout", "-q", "--detach", chosen if how == "rebase" else f"origin/{MAIN}")
        done = {
            "merge": lambda: person.tries("merge", "-q", "--no-ff", "-m", "merged", chosen),
            "squash": lambda: (
                person.tries("merge", "-q", "--squash", chosen)
                and person.tries("commit", "-qm", "squashed", "--allow-empty")
            ),
            "rebase": lambda: person.tries("rebase", "-q", f"origin/{MAIN}"),
        }[how]()
        if done and self._sound(person) and person.tries("push", "-q", "origin", f"HEAD:refs/heads/{MAIN}"):
            self.counts[f"{how}s of a branch"] += 1
            if self.dice.random() < 0.5:
                person.tries("push", "-q", "--delete", "origin", chosen.removeprefix("origin/"))
        self._go_to_main(person)
