"""What a host is to be, what it is, and in what they differ: data, and no look at any machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from monkey.fleet.machine_capacity import MEMORY_BY_KERNEL, MEMORY_BY_LOOKS, MEMORY_NOT_HELD
from monkey.fleet.secret_values import quote_secret_line
from monkey.signing.machine_list import is_same_list
from monkey.spec.job.counted_resources import CountedResources, spell_counts
from monkey.spec.job.lease_length import LEASE, spell_lease_argument
from monkey.spec.job.runtime_kind import RuntimeKind
from monkey_stacks.bundle.wheels import WheelTarget
from monkey_stacks.ssh.remote.agents import digest_secret
from monkey_stacks.ssh.remote.keep_alive import CRON, DETACHED, SYSTEMD
from monkey_stacks.ssh.remote.paths import HOST_ARGUMENTS


@dataclass(frozen=True)
class HostPlan:
    """An agent on a host. What is secret is never shown, and reaches nothing but files of mode 0600 on the host."""

    #: The store's URL in its one form (`monkey.store.open.locate_url`).
    store: str
    project: str
    fleet: str
    workdir: str = "~/.monkey"
    max_slots: int | None = None
    #: Seconds without work after which the agent leaves.
    idle_timeout: float = 10.0
    #: Bytes that the host may keep of code, environments and datasets; None for half of its disk.
    cache_size: int | None = None
    #: "auto": all but those on which others compute; or the driver's numbers of ours.
    gpus: str | tuple[int, ...] = "auto"
    #: The program that runs images; None for the first that works there.
    runtime: RuntimeKind | None = None
    #: The counted resources of the host.
    resources: CountedResources = ()
    #: Seconds that the agent may be silent before others take its jobs over.
    lease: float = LEASE
    #: What must be mounted, as `spell_mounts` has it; "" for nothing.
    mounts: str = ""
    #: Values of the jobs' secrets, by name.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Names of secrets whose values stay as the host has them.
    kept: tuple[str, ...] = ()
    #: The store was created: a host to which its directory is not there cannot use it.
    begun: bool = True
    #: Variables by which the agent reaches the store (AWS_SECRET_ACCESS_KEY), by name.
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Ask for its container runtime: a plan has jobs with images for it.
    images: bool = False
    #: The list of those that the agent obeys: public keys, with the user's own as its owner's.
    signers: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """Return what tells this fleet from all others on a host, as a name of a file."""
        told = hashlib.sha256(f"{self.store}\n{self.project}\n{self.fleet}".encode()).hexdigest()[:8]
        return f"{self.project[:40]}-{self.fleet[:40]}-{told}"

    @property
    def scheme(self) -> str:
        """Return the store's scheme, "" for a directory."""
        return self.store.partition("://")[0] if "://" in self.store else ""

    @property
    def place(self) -> dict[str, str]:
        """Return the place that operations on the host work in."""
        return {
            "workdir": self.workdir,
            "fleet": self.name,
            "store": self.store if self.begun and not self.scheme else "",
        }

    @property
    def observation(self) -> dict[str, Any]:
        """Return what a look at the host is asked for."""
        return {**self.place, "images": self.images, "runtime": self.runtime}

    @property
    def arguments(self) -> list[str]:
        """Return the agent's arguments."""
        said = ["--store", self.store, "--project", self.project, "--fleet", self.fleet]
        said += ["--idle-timeout", f"{self.idle_timeout:g}"]
        said += ["--gpus", self.gpus if isinstance(self.gpus, str) else ",".join(map(str, self.gpus)) or "none"]
        said += ["--cache-size", str(self.cache_size)] if self.cache_size is not None else []
        said += ["--runtime", self.runtime] if self.runtime is not None else []
        said += ["--mounts", self.mounts] if self.mounts else []
        said += ["--resources", spell_counts(self.resources)] if self.resources else []
        said += spell_lease_argument(self.lease)
        return said + (["--max-slots", str(self.max_slots)] if self.max_slots is not None else [])

    def digest(self, bundle: str) -> str:
        """Return a digest of what an agent is started with: another one asks for another agent."""
        return hashlib.sha256(json.dumps([bundle, self.arguments, HOST_ARGUMENTS]).encode()).hexdigest()

    @property
    def secret_lines(self) -> dict[str, str]:
        """Return name to line of the file of the jobs' secrets, as `monkey.fleet.secret_values` reads it."""
        return {name: quote_secret_line(name, value) for name, value in self.secrets.items()}


@dataclass(frozen=True)
class HostAgent:
    """An agent on a host."""

    number: int
    bundle: str
    digest: str
    #: Key and digest of its credentials.
    credentials: tuple[str, str] = field(repr=False)
    #: How it is kept alive: "systemd", "cron" or "detached".
    kept: str
    #: It is started again after a boot.
    after_boot: bool
    alive: bool
    #: It left in peace: there was nothing to do.
    left: bool
    #: It is being replaced, and leaves when its jobs have ended.
    draining: bool
    pid: int | None = None


@dataclass(frozen=True)
class ObservedHost:
    """A host, as it was found."""

    #: Its name and identity, as one name of a file.
    host: str
    name: str
    user: str
    target: WheelTarget
    workdir: str
    writable: bool
    #: Where the agents' cache is to be lie files of somebody else.
    occupied: bool
    #: Bytes free below the working directory.
    free: int
    linger: bool
    user_systemd: bool
    #: Whatever a user runs ends when he logs out.
    ends_at_logout: bool
    cron: bool
    #: By UUID.
    gpus: tuple[str, ...]
    bundles: tuple[str, ...]
    #: The newest last: it is the one that takes claims.
    agents: tuple[HostAgent, ...]
    #: Units that belong to no agent.
    orphans: tuple[str, ...]
    #: A key, and names of secrets to digests of what the host has of them under it.
    secrets: tuple[str, Mapping[str, str]] = field(repr=False)
    #: The public key by which agents reach a store on an SSH host, "" for none.
    key: str
    #: Why a store in a directory cannot be used from there, "" for nothing that was seen.
    lacks: str = ""
    #: Hash of the list of those that agents obey, "" where there is none that they would take.
    signers: str = ""
    #: Versions of control groups by which agents could limit memory; 2 only if systemd keeps them.
    groups: tuple[int, ...] = ()
    #: Other users with agents here.
    others: tuple[str, ...] = ()
    #: Why no image can be run there; "" where one can, and where that was not asked.
    lacks_runtime: str = ""

    @property
    def living(self) -> HostAgent | None:
        """Return the agent that takes claims, if it lives."""
        newest = self.agents[-1] if self.agents else None
        return newest if newest is not None and newest.alive and not newest.draining else None

    @property
    def keeping(self) -> str:
        """Return how an agent would be kept alive here: "systemd", "cron" or "detached"."""
        if self.linger and self.user_systemd:
            return SYSTEMD
        return CRON if self.cron else DETACHED

    @property
    def memory(self) -> str:
        """Return how the memory of jobs is held here: `MEMORY_BY_KERNEL` and its like."""
        if 1 in self.groups or (2 in self.groups and self.keeping == SYSTEMD):
            return MEMORY_BY_KERNEL
        return MEMORY_BY_LOOKS if self.target.platform.startswith("linux") else MEMORY_NOT_HELD

    @property
    def empty(self) -> bool:
        """Say whether nothing of the fleet is here."""
        return not (self.agents or self.orphans or self.key or self.secrets[1])


@dataclass(frozen=True)
class HostInventory:
    """What all fleets have on a host, by the names that `HostPlan.name` gives them, and where it was met."""

    directories: tuple[str, ...]
    units: tuple[str, ...]
    crontab: tuple[str, ...]
    #: Wardens and jobs, of whatever fleet.
    processes: tuple[int, ...]
    #: Files and directories of ours that no fleet needs.
    files: tuple[str, ...] = ()
    #: Those whose newest agent lives and takes claims.
    living: tuple[str, ...] = ()

    @property
    def fleets(self) -> frozenset[str]:
        """Return all fleets that have anything here."""
        return frozenset((*self.directories, *self.units, *self.crontab))


def read_facts(facts: Mapping[str, Any]) -> ObservedHost:
    """Return the state in a reply of `host_setup.observe_fleet`."""
    agents = tuple(HostAgent(**{**agent, "credentials": tuple(agent["credentials"])}) for agent in facts["agents"])
    taken = ("host", "name", "user", "workdir", "writable", "occupied", "free", "linger", "user_systemd")
    return ObservedHost(
        **{name: facts[name] for name in (*taken, "ends_at_logout", "cron", "key", "lacks", "signers")},
        target=WheelTarget((facts["python"][0], facts["python"][1]), facts["platform"], facts["libc"]),
        gpus=tuple(facts["gpus"]),
        groups=tuple(facts["groups"]),
        others=tuple(facts["others"]),
        lacks_runtime=facts.get("lacks_runtime", ""),
        bundles=tuple(facts["bundles"]),
        agents=agents,
        orphans=tuple(facts["orphans"]),
        secrets=(facts["secrets"][0], dict(facts["secrets"][1])),
    )


def list_differences(seen: ObservedHost, wanted: HostPlan, bundle: str, *, idle: bool = False) -> tuple[str, ...]:
    """Return in what a host is not as wanted, in words for people; none where `converge` would change nothing.

    `idle`: there is nothing to do, so that an agent which has left for that reason is as it should be.
    """
    found = []
    newest = seen.living
    if seen.empty:
        return (_missing(seen),)
    if newest is None:
        found += [] if idle and seen.agents and seen.agents[-1].left else [_missing(seen)]
    else:
        if newest.bundle != bundle:
            found.append("another version of the agent")
        elif newest.digest != wanted.digest(bundle):
            found.append("other settings")
        if (
            not newest.credentials[0]
            or digest_secret(newest.credentials[0], _text(wanted.credentials)) != newest.credentials[1]
        ):
            found.append("other credentials")
        if newest.kept != seen.keeping:
            found.append(f"kept alive by {newest.kept}, not by {seen.keeping}")
        elif newest.after_boot != (seen.keeping != DETACHED):
            found.append("not begun again after a boot")
    if not _same_secrets(seen, wanted):
        found.append("other secrets")
    if not is_same_list(seen.signers, wanted.signers):
        found.append("other signers")
    if any(agent.alive and not agent.draining for agent in seen.agents[:-1]):
        found.append("more than one agent takes claims")
    return (*found, *(f"an orphan unit {name}" for name in seen.orphans))


def _missing(seen: ObservedHost) -> str:
    if not seen.agents:
        return "there is no agent"
    return "the agent left, for there was nothing to do" if seen.agents[-1].left else "no agent lives"


def _text(credentials: Mapping[str, str]) -> str:
    return json.dumps(dict(credentials), sort_keys=True)


def _same_secrets(seen: ObservedHost, wanted: HostPlan) -> bool:
    key, there = seen.secrets
    needless = there.keys() - wanted.secrets.keys() - set(wanted.kept)
    return not needless and all(
        there.get(name) == digest_secret(key, line) for name, line in wanted.secret_lines.items()
    )
