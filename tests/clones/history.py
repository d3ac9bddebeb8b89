"""One random history: three people edit, commit, merge, plan, apply and steer, each in a clone of their own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from monkey.apply.world.world import World, open_world
from monkey.protocol.entries import ClaimEnd
from monkey.spec.project.project import load_project
from tests.clones.campaign import (
    Campaign,
    KeptPlan,
    check_applied,
    check_logs,
    check_newest_main,
    check_race,
)
from tests.clones.git_steps import NAMES, GitSteps
from tests.clones.person import Person
from tests.clones.second_reader import MAIN, Logged, foretell, read_logs, read_wanted
from tests.unit.apply.small_project import Pen

#: Each step, and how often it is taken.
STEPS = {
    "edit": 4, "commit": 1, "push": 2, "pull": 3, "proposal": 5, "main": 4, "switch": 2, "integrate": 4, "plan": 4,
    "agree": 7, "apply": 3, "order": 3, "late": 2, "race": 2, "work": 2, "force": 1,
}  # fmt: skip


class History(GitSteps):
    """Three clones, one store, and what is known of it all."""

    def __init__(self, base: Path, seed: int, campaign: Campaign) -> None:
        """Make the clones; nothing was ever applied."""
        super().__init__(base, seed, campaign.servers[0])
        self.campaign, self.counts, self.told = campaign, campaign.counts, [f"seed {seed}"]
        self.plans: list[KeptPlan] = []
        #: Jobs that are over.
        self.ended: frozenset[str] = frozenset()

    def run(self, steps: int) -> None:
        """Take so many random steps, and at the end apply what main has come to be."""
        with asyncio.Runner() as runner:
            stack = AsyncExitStack()
            world = runner.run(stack.enter_async_context(open_world(load_project(self.people[0].root))))
            runner.run(world.begin())
            with self._agent(runner, world):
                self._apply(self.people[0])
                for _ in range(steps):
                    (step,) = self.dice.choices([*STEPS], [*STEPS.values()])
                    person = self.dice.choice(self.people)
                    self.told.append(f"{person.name} {step}")
                    self.counts["steps"] += 1
                    getattr(self, f"_step_{step}")(person)
                    self._beat()
                self._finish()
            runner.run(stack.aclose())

    @property
    def where(self) -> str:
        """Return the steps so far."""
        return " / ".join(self.told)

    # -- the machine: an agent's lock and its pen, which writes the beats, claims and ends that an agent would ---------

    @contextlib.contextmanager
    def _agent(self, runner: asyncio.Runner, world: World) -> Iterator[None]:
        (fleet,) = world.local_fleets
        where = self.people[0].root.parent / "state" / fleet.directory.relative_to(fleet.directory.parents[3])
        where.mkdir(parents=True)
        pen = Pen(world, f"local/{fleet.agent}/1")
        self._beat = lambda: runner.run(pen.heart.beat())
        self._work = lambda name, job, outcome: runner.run(_do_job(pen, name, job, outcome))
        self._beat()
        with (where / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _step_work(self, person: Person) -> None:
        """Let the agent end some jobs, well or badly."""
        for name, log in self._logs.items():
            for job in sorted(set(log.jobs) - self.ended):
                if self.dice.random() < 0.3 and log.cancelled is None:
                    self._work(name, job, self.dice.choice([ClaimEnd.SUCCEEDED, ClaimEnd.FAILED]))
                    self.ended |= {job}

    # -- what people do with monkey ------------------------------------------------------------------------------------

    @property
    def _logs(self) -> dict[str, Logged]:
        return read_logs(self.store)

    def _plan(self, person: Person, *, prune: bool) -> KeptPlan:
        logs = self._logs
        foretold = foretell(person, logs, self.ended, prune=prune)
        check_newest_main(person, logs, foretold, self.where)
        plan: Any = person.json("plan", *(["--prune"] if prune else []))
        return KeptPlan(self.campaign.note_plan(plan, foretold, self.where), foretold, prune)

    def _step_plan(self, person: Person) -> None:
        self.plans = [*self.plans[-5:], self._plan(person, prune=self.dice.random() < 0.3)]

    def _step_agree(self, person: Person) -> None:
        """Apply what somebody agreed to, some steps ago: the plan may have become another one since."""
        if not self.plans or self.dice.random() < 0.4:
            self._step_plan(person)
        kept, counts = self.dice.choice(self.plans), self.counts
        before = self._logs
        now = foretell(person, before, self.ended, prune=kept.prune)
        options = ["--expect", kept.digest, *(["--prune"] if kept.prune else [])]
        said, after = person.monkey("apply", "--detach", *options), self._logs
        check_logs(before, after, self.where)
        names = read_wanted(person.root).keys() & before.keys()
        done = not now.key and any(before[name].newest.get("plan") == kept.digest for name in names)
        if now.key == kept.foretold.key or done:
            counts["--expect that was done already" if done else "--expect that matched"] += 1
            check_applied(person, before, after, now, said, self.where)
            assert not done or f"The plan {kept.digest} was applied already" in said.out, f"{self.where}\n{said}"
        else:
            counts["--expect that did not"] += 1
            assert said.code == 3, f"{self.where}\n{said}\n{now}\n{kept}"
            assert after == before, self.where

    def _step_apply(self, person: Person) -> None:
        self._apply(person)

    def _apply(self, person: Person, *options: str) -> None:
        before = self._logs
        foretold = foretell(person, before, self.ended)
        said, after = person.monkey("apply", "--detach", "--yes", *options), self._logs
        check_logs(before, after, self.where)
        check_applied(person, before, after, foretold, said, self.where)
        self.counts["applies without a digest"] += 1

    def _step_proposal(self, person: Person) -> None:
        """Make a branch that changes something, push it, and perhaps apply from it before it is merged."""
        self._branch_off(person)
        if self.dice.random() < 0.5:
            self._apply(person)

    def _step_main(self, person: Person) -> None:
        """Change main as it is now, push that, and apply it."""
        self._go_to_main(person)
        self._step_edit(person)
        self._step_push(person)
        if self.dice.random() < 0.7:
            self._step_plan(person)
            self._apply(person)

    def _step_force(self, person: Person) -> None:
        """Apply what would be refused, too."""
        before = self._logs
        said, after = person.monkey("apply", "--detach", "--yes", "--force", "on purpose"), self._logs
        check_logs(before, after, self.where)
        assert said.code == 0, f"{self.where}\n{said}"
        for name, want in read_wanted(person.root).items():
            assert after[name].wanted == want, f"{self.where}: {name} is not what was forced"
        self.counts["forced applies"] += 1

    def _step_order(self, person: Person) -> None:
        """Steer a sweep that somebody applied."""
        name, verb = self.dice.choice(NAMES), self.dice.choice(["pause", "resume", "resume", "cancel", "retry"])
        before = self._logs
        said, after = person.monkey(verb, name), self._logs
        check_logs(before, after, self.where)
        assert said.code == 0 or name not in before, f"{self.where}\n{said}"
        for body in after[name].bodies[len(before[name].bodies) :] if name in before else ():
            assert body["kind"] == verb, self.where
            self.ended -= frozenset(body.get("jobs", ()))
            self.counts["orders"] += 1

    def _step_late(self, person: Person) -> None:
        """Apply an older commit, as a run of CI does that waited for long."""
        self._settle(person)
        back = person.branch or MAIN
        person.git("checkout", "-q", "--detach", f"HEAD~{self.dice.randrange(3)}" if self._deep(person) else "HEAD")
        if self.dice.random() < 0.5:
            person.git("checkout", "-q", "-B", back)
        self.counts["late applies"] += 1
        self._apply(person)
        person.tries("checkout", "-q", back)

    def _deep(self, person: Person) -> bool:
        return person.tries("rev-parse", "--verify", "-q", "HEAD~2")

    def _step_race(self, person: Person) -> None:
        """Have two people apply at the same time, each the plan that they have just looked at."""
        other = self.dice.choice([one for one in self.people if one is not person])
        racers = person, other
        plans = [self._plan(one, prune=False) for one in racers]
        before = self._logs
        first, second = self.campaign.servers
        person.begin(first, "apply", "--detach", "--expect", plans[0].digest)
        other.begin(second, "apply", "--detach", "--expect", plans[1].digest)
        said, after = (person.end(first), other.end(second)), self._logs
        check_logs(before, after, self.where)
        self.counts += check_race(racers, said, before, after, self.where)
        self.counts["races"] += 1

    def _finish(self) -> None:
        """Hold that nothing is stuck: main can be applied, by force where another branch was applied last."""
        person = self.people[0]
        self.told.append("end")
        self._go_to_main(person)
        self._step_force(person)
        foretold = foretell(person, self._logs, self.ended)
        assert not foretold.key and not foretold.refused, self.where
        kinds = [body["kind"] for log in self._logs.values() for body in log.bodies]
        self.counts.update({f"entries: {kind}": kinds.count(kind) for kind in sorted(set(kinds))})


async def _do_job(pen: Pen, name: str, job: str, outcome: ClaimEnd) -> None:
    await pen.begin(job, name)
    await pen.end(job, outcome, name)
