"""Where everything lies in the store: the one place that spells keys. The layout is drawn in docs/dev.md."""

from __future__ import annotations

import re

#: Bytes that a project's, sweep's or fleet's name may have: they become parts of keys and of file names.
PROJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
#: What may be a number: of no more digits than any log will have.
_NUMBER = re.compile(r"[0-9]{8,15}")
_AGENT = re.compile("/".join([PROJECT_NAME.pattern] * 3))
#: Where all projects of a store are.
PROJECTS = "projects/"


def is_name(name: str) -> bool:
    """Tell whether a project, sweep or fleet may have this name: a writer of the store can make any key."""
    return PROJECT_NAME.fullmatch(name) is not None


def spell_number(n: int) -> str:
    """Spell an entry's number so that keys sort as numbers do."""
    return f"{n:08d}"


def parse_number(name: str) -> int | None:
    """Return the number that `spell_number` spelled so; None for any other name."""
    number = int(name) if _NUMBER.fullmatch(name) else 0
    return number if number and spell_number(number) == name else None


def spell_segment_key(log: str, i: int) -> str:
    """Return the key of segment i, from 0, of an attempt's log; `log`: the prefix of all of them.

    Keys sort as segments do up to a million of them: terabytes, or eleven days of one a second while a user follows.
    """
    return f"{log}{i:06d}"


def is_agent_name(text: str) -> bool:
    """Is it the name of an agent, "fleet/name/boot"?"""
    return _AGENT.fullmatch(text) is not None


class Keys:
    """The keys of one project."""

    def __init__(self, project: str) -> None:
        """Take the project's name; raises ValueError where it could not be part of a key."""
        if not is_name(project):
            raise ValueError(f"a project is named with letters, digits, '.', '_' and '-', not {project!r}")
        self.project = project
        self.root = f"{PROJECTS}{project}/"
        self.sweeps = f"{self.root}sweeps/"
        self.stops = f"{self.root}stops/"
        self.jobs = f"{self.root}jobs/"
        self.agents = f"{self.root}agents/"
        self.permits = f"{self.root}permits/"
        self.notices = f"{self.root}notices/"
        #: Of what running jobs wrote (`monkey.protocol.record.shipment`). Not below `agents`, which all agents list.
        self.shipments = f"{self.root}shipments/"
        #: The log of adopted results (`monkey.protocol.adoption_log`).
        self.adoptions = f"{self.root}adoptions/"
        self.watchers = f"{self.root}watch/"
        #: Of syncs, which follow branches: by remotes and hosts (`monkey.protocol.status.sync_beat`).
        self.syncs = f"{self.root}sync/"
        #: Of each fleet that Pulumi looks after: its state, and who changes it now.
        self.machines = f"{self.root}machines/"
        #: Of machines that were rented and gave up: why, by fleets (`monkey.fleet.boot_failures`).
        self.boots = f"{self.root}boots/"
        #: What one agent of a large fleet listed of `agents`, for the others (`monkey.protocol.liveness.roster`).
        self.roster = f"{self.root}roster"
        #: Overwritten when agents should look (`monkey.protocol.wakeup`).
        self.bell = f"{self.root}bell"

    def sweep_log(self, sweep: str) -> str:
        """Return the base of a sweep's log."""
        return f"{self.sweeps}{sweep}/"

    def stop_log(self, sweep: str) -> str:
        """Return the base of a sweep's log of stops: what agents conclude of it."""
        return f"{self.stops}{sweep}/"

    def job_log(self, job: str) -> str:
        """Return the base of a job's log."""
        return f"{self.jobs}{job}/"

    def notice_log(self, sweep: str, event: str, way: str) -> str:
        """Return the base of a notice's log: of one message about a sweep by one channel."""
        return f"{self.notices}{sweep}/{event}/{way}/"

    def comment_authors(self, sweep: str, way: str) -> str:
        """Return the prefix of the accounts that wrote a sweep's comment at a forge."""
        return f"{self.notices}{sweep}/authors/{way}/"

    def permit_log(self, sweep: str, i: int) -> str:
        """Return the base of the log of a sweep's i-th permit (max_concurrent_jobs)."""
        return f"{self.permits}{sweep}/{i}/"

    def out(self, job: str, k: int) -> str:
        """Return the prefix of what the attempt that was claimed at k left."""
        return f"{self.jobs}{job}/out/{spell_number(k)}/"

    def checkpoints(self, job: str) -> str:
        """Return the prefix of all of a job's checkpoints."""
        return f"{self.jobs}{job}/checkpoints/"

    def checkpoint(self, job: str, k: int, n: int) -> str:
        """Return the n-th checkpoint of the attempt that was claimed at k: it lists the files."""
        return f"{self.checkpoints(job)}{spell_number(k)}/{spell_number(n)}"

    def checkpoint_file(self, job: str, k: int, sha256: str) -> str:
        """Return a file of that attempt's checkpoints."""
        return f"{self.checkpoints(job)}{spell_number(k)}/files/{sha256}"

    def facts(self, sha256: str) -> str:
        """Return the facts with this hash: below the project, as rented machines may write nowhere else."""
        return f"{self.root}facts/{sha256}"

    def queue(self, fleet: str) -> str:
        """Return the prefix of a fleet's queue markers."""
        return f"{self.root}queue/{fleet}/"

    def marker(self, fleet: str, sweep: str, n: int) -> str:
        """Return the marker that says: entry n of the sweep's log left work for this fleet."""
        return f"{self.queue(fleet)}{sweep}/{spell_number(n)}"

    def idle_hints(self, fleet: str) -> str:
        """Return the prefix of the hints of a fleet's agents that nothing is left."""
        return f"{self.root}idle/{fleet}/"

    def idle_hint(self, fleet: str, sweep: str, n: int) -> str:
        """Return the hint that says: nothing of what entry n of the sweep's log left for this fleet is left."""
        return f"{self.idle_hints(fleet)}{sweep}/{spell_number(n)}"

    def beat(self, agent: str) -> str:
        """Return an agent's heartbeat; `agent` is "fleet/name/boot"."""
        return f"{self.agents}{agent}/beat"

    def segment(self, agent: str, i: int) -> str:
        """Return the i-th sealed segment of an agent's journal."""
        return f"{self.agents}{agent}/{spell_number(i)}"

    def shipped(self, agent: str) -> str:
        """Return the prefix of the sealed segments of an agent's shipment."""
        return f"{self.shipments}{agent}/"

    def shipped_segment(self, agent: str, i: int) -> str:
        """Return the i-th sealed segment of an agent's shipment."""
        return f"{self.shipped(agent)}{spell_number(i)}"

    def watcher(self, who: str) -> str:
        """Return the marker of a user who watches now."""
        return f"{self.watchers}{who}"

    def sync_beat(self, remote: str, host: str) -> str:
        """Return the heartbeat of a sync; `remote` is the hash of the remote and its branch."""
        return f"{self.syncs}{remote}/{host}/beat"

    def code(self, sha256: str) -> str:
        """Return a code snapshot's key (shared by all projects)."""
        return f"code/{sha256}.tar.gz"
