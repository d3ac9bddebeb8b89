"""Random histories of three people, and the judge of all that their applies do. The dice are seeded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.clones.person import Person, Said
from tests.clones.second_reader import MAIN, Foretold, Logged, read_wanted
from tests.verb_forks import VerbServer

#: What an apply says of a revision, and of one that another apply made just then.
APPENDED = re.compile(r"^(\w+): revision (\d+) appended$", re.MULTILINE)
TAKEN_OVER = re.compile(r"^(\w+): .* applied the same just now", re.MULTILINE)


@dataclass(frozen=True)
class KeptPlan:
    """A plan that somebody looked at, and what the second reader says of it."""

    digest: str
    foretold: Foretold
    prune: bool


@dataclass
class Campaign:
    """What holds for all histories: a digest and a key belong to each other, whoever planned, wherever and when."""

    digests: dict[frozenset[Any], str] = field(default_factory=dict)
    keys: dict[str, frozenset[Any]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    #: Two verbs may run at the same time.
    servers: tuple[VerbServer, VerbServer] = field(default_factory=lambda: (VerbServer(), VerbServer()))

    def note_plan(self, plan: Mapping[str, Any], foretold: Foretold, told: str) -> str:
        """Hold a plan against what the second reader says; returns its digest."""
        digest: str = plan["digest"]
        refused = {sweep["name"] for sweep in plan["sweeps"] if sweep.get("refused")}
        assert refused == foretold.refused, f"{told}: refused are {refused}, expected {foretold.refused}\n{plan}"
        assert self.digests.setdefault(foretold.key, digest) == digest, f"{told}: another digest of the same\n{plan}"
        assert self.keys.setdefault(digest, foretold.key) == foretold.key, f"{told}: a digest of two plans\n{plan}"
        self.counts["plans"] += 1
        self.counts["plans with refused sweeps"] += bool(refused)
        return digest


def check_logs(before: Mapping[str, Logged], after: Mapping[str, Logged], told: str) -> None:
    """Hold that no entry of any log was lost or altered."""
    for name, log in before.items():
        assert after[name].entries[: len(log.entries)] == log.entries, f"{told}: the log of {name} was altered"


def check_applied(
    person: Person, before: Mapping[str, Logged], after: Mapping[str, Logged], foretold: Foretold, said: Said, told: str
) -> None:
    """Hold that an apply did what was foretold, and nothing else; it was the only one at work."""
    told = f"{told}\n{said}\n{foretold}"
    appended = {name: int(number) for name, number in APPENDED.findall(said.out)}
    assert appended.keys() == foretold.revised, told
    assert said.code == bool(foretold.refused), told
    wanted = read_wanted(person.root)
    for name, log in after.items():
        old = before.get(name)
        news = log.bodies[len(old.bodies) if old else 0 :]
        kinds = [body["kind"] for body in news]
        if name in foretold.revised:
            assert kinds == ["revision"] and appended[name] == log.revision, told
            assert log.newest["author"].startswith(f"{person.name}@") and log.wanted == wanted[name], told
            assert len(log.jobs) == len(set(log.jobs)) == len(wanted[name].values), told
        elif name in foretold.pruned:
            assert kinds == ["cancel"], told
        elif kinds:
            head = person.git("rev-parse", "HEAD")
            assert kinds == ["seen"] and name in foretold.kept and news[0]["git"]["commit"] == head, told


def check_newest_main(person: Person, logs: Mapping[str, Logged], foretold: Foretold, told: str) -> None:
    """Hold that main is never refused for a sweep that was applied from main, whatever other branches saw since.

    That is for a main that has all that the remote's has.
    """
    if person.branch != MAIN or not foretold.refused:
        return
    tip = person.git("ls-remote", "origin", MAIN).split()[0]
    if not person.tries("merge-base", "--is-ancestor", tip, "HEAD"):
        return
    for name in foretold.refused:
        git = logs[name].newest["git"]
        refused = git["branch"] == MAIN and person.tries("merge-base", "--is-ancestor", git["commit"], "HEAD")
        assert not refused, f"{told}: main is refused for {name}, which was applied from {git} of main"


def check_race(
    people: tuple[Person, Person],
    said: tuple[Said, Said],
    before: Mapping[str, Logged],
    after: Mapping[str, Logged],
    told: str,
) -> Counter[str]:
    """Hold that of two applies at the same time, what each reports is in the log, and says who lost. Return counts."""
    counts, told = Counter[str](), f"{told}\n{said}"
    reported: dict[tuple[str, int], str] = {}
    for person, one in zip(people, said, strict=True):
        for name, number in APPENDED.findall(one.out):
            assert (name, int(number)) not in reported, told
            reported[name, int(number)] = person.name
        counts["races that were lost"] += "was changed by somebody else" in one.err
        counts["races for the same"] += bool(TAKEN_OVER.search(one.out))
        assert one.code in (0, 1, 3), told
    for name, log in after.items():
        old = len(before[name].bodies) if name in before else 0
        for number, body in enumerate(log.bodies[old:], old + 1):
            if body["kind"] == "revision":
                assert body["author"].startswith(f"{reported.pop((name, number))}@"), told
    assert not reported, f"{told}: reported, and in no log: {reported}"
    return counts
