"""Looking for what is wrong before it hurts: the project, its store, its machines, its InfluxDB. Repairs nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monkey import origin
from monkey.apply.inspect.departed_machines import (
    find_departed_agents,
    may_hold_points,
    read_count,
    read_exporter_states,
)
from monkey.apply.inspect.image_runtimes import check_runtimes
from monkey.apply.inspect.misplaced_objects import list_misplaced
from monkey.apply.trust.endpoints import (
    TRUST_VARIABLE,
    Endpoint,
    check_endpoints,
    is_trusted,
    list_report_endpoints,
)
from monkey.apply.world.fleets import FLEET_MODULES, open_fleets
from monkey.apply.world.group_store import find_unshared, spell_remedy
from monkey.apply.world.project_store import find_folding_places, locate_project_store
from monkey.apply.world.world import World, open_world
from monkey.errors import EndpointRefused, FleetError, MonkeyError, SpecError
from monkey.fleet.fleet_port import Checkable, Fleet
from monkey.fleet.secret_values import SecretValues
from monkey.plan.explain import format_seconds
from monkey.plan.sizes import format_size
from monkey.protocol.status.store_snapshot import AgentView, StoreSnapshot, SweepView
from monkey.signing.entry_signers import load_user_signers
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.store.directory.network_mount import describe_store_mount
from monkey.store.directory.store import DirectoryStore
from monkey.store.probe import probe_store

if TYPE_CHECKING:
    from monkey.spec.project.project import Project
    from monkey.spec.sweep.models import Spec

#: What else must be installed to make machines of a type.
_PACKAGES = {
    "ssh": ("pulumi",),
    "aws": ("boto3", "pulumi", "pulumi_aws"),
    "gcp": ("google.auth", "pulumi", "pulumi_gcp"),
}


@dataclass(frozen=True)
class DoctorCheck:
    """One thing that was looked at."""

    #: What: "store", "influxdb".
    about: str
    #: What was found; where something is wrong, what was expected.
    text: str
    #: What to do; "" where all is well.
    hint: str = ""
    wrong: bool = False


async def check_project(project: Project) -> AsyncIterator[DoctorCheck]:
    """Look at everything, one thing after the other; what hinders one look hinders no other."""
    specs: list[Spec] = []
    for check in _specs(project, specs):
        yield check
    for check in _programs(project):
        yield check
    async for text, hint in check_runtimes(specs, project):
        yield DoctorCheck("images", text, hint, wrong=bool(hint))
    snapshot = None
    try:
        async with open_world(project) as world:
            for check in _secrets(world, specs):
                yield check
            if isinstance(world.store, DirectoryStore):
                for text in await list_misplaced(world.store, world.keys):
                    hint = "monkey did not put it there, and reads nothing of it: find out who did, and remove it"
                    yield DoctorCheck("store", text, hint, wrong=True)
                for former in world.memo.list_former_places(world.store.id):
                    text = f"it was moved here from {former}: agents that began there end themselves within minutes"
                    yield DoctorCheck("store", text, "`monkey apply` runs their jobs here")
                if narrow := find_unshared(world.store, world.keys):
                    text = f"the group of {world.store.url} may write it, but not {narrow}"
                    yield DoctorCheck("store", text, spell_remedy(world.store), wrong=True)
            yield await _store(world)
            for place in find_folding_places(project):
                yield DoctorCheck("names", f"{place} takes names that differ in case, or Unicode form, for one")
            if world.store is not None:
                snapshot = await world.reader().read()
            for check in await _clouds(world.fleets, specs):
                yield check
    except MonkeyError as exc:
        yield _wrong("store", exc)
        for check in await _clouds(open_fleets(project, project.store, lambda: None, load_user_signers), specs):
            yield check
    for check in _agents(snapshot):
        yield check
    async for check in _influxes(project, snapshot):
        yield check


async def _clouds(fleets: Mapping[str, Fleet], specs: Sequence[Spec] = ()) -> list[DoctorCheck]:
    """Ask whether machines could be had as each provider, and each spec, says, by what is installed here."""
    found = []
    chosen = {name for spec in specs for name in spec.fleets if name in fleets}
    for fleet in [fleets[name] for name in [*fleets, *sorted(chosen - {*fleets})]]:
        if not isinstance(fleet, Checkable) or any(map(_missing, _PACKAGES.get(fleet.type, ()))):
            continue
        try:
            found.append(DoctorCheck("providers", await fleet.check_offer()))
        except MonkeyError as exc:
            found.append(_wrong("providers", exc))
    return found


def _wrong(about: str, exc: MonkeyError) -> DoctorCheck:
    return DoctorCheck(about, exc.message, exc.hint or "", wrong=True)


def _specs(project: Project, into: list[Spec]) -> Iterator[DoctorCheck]:
    from monkey.apply.world.dataset_loader import check_dvc
    from monkey.apply.world.desired_state import list_spec_files, read_specs

    try:
        into += read_specs(project, list_spec_files(project))
        names = ", ".join(spec.name for spec in into)
        yield DoctorCheck("specs", f"{len(into)} of project {project.name}: {names}")
        for spec in into:
            check_dvc(project.root, spec)
    except SpecError as exc:
        for problem in exc.problems:
            place = f"{problem.file}:{problem.line}:{problem.column}"
            yield DoctorCheck("specs", f"{place}: {problem.message}", problem.hint or "", wrong=True)
    except MonkeyError as exc:
        yield DoctorCheck("specs", f"{exc.message}; {exc.hint}")  # a project may have none yet


def _programs(project: Project) -> Iterator[DoctorCheck]:
    """Look for what this machine needs to make others."""
    types = {provider.type for provider in project.providers.values()}
    if not types & FLEET_MODULES.keys():
        return
    stacks = FLEET_MODULES["ssh"].partition(".")[0]
    if types & _PACKAGES.keys() and not _missing("pulumi"):
        yield _looked(import_module(f"{stacks}.engine.installation").check_pulumi)
    for type_ in sorted(types & _PACKAGES.keys()):
        missing = list(filter(_missing, _PACKAGES[type_]))
        if missing:
            what = f"machines of type {type_} need what is not installed here: {', '.join(missing)}"
            yield DoctorCheck("pulumi", what, origin.hint_install(type_), wrong=True)
        elif type_ != "ssh":
            yield _looked(partial(import_module(f"{stacks}.engine.plugins").check_plugin, type_))
    logins = [of for of in project.providers.values() if of.slurm is not None and of.slurm.login]
    if ("ssh" in types or logins) and shutil.which("ssh") is None:
        yield DoctorCheck("ssh", "there is no program `ssh` on the PATH", "install OpenSSH's client", wrong=True)


def _looked(look: Callable[[], str]) -> DoctorCheck:
    try:
        return DoctorCheck("pulumi", look())
    except FleetError as exc:
        return _wrong("pulumi", exc)


def _missing(package: str) -> bool:
    try:
        return find_spec(package) is None
    except ModuleNotFoundError:  # not even what it is in
        return True


def _secrets(world: World, specs: list[Spec]) -> Iterator[DoctorCheck]:
    """Say which secrets machines would not know."""
    missing: dict[str, list[str]] = {}
    known = 0
    for spec in specs:
        for secret in spec.secrets:
            for name in spec.settings().providers:
                try:
                    world.fleet(name).check_secrets([secret])
                    known += 1
                except FleetError as exc:
                    missing.setdefault(f"{spec.source}: provider {name!r}: {exc.message}", [exc.hint or ""])
    yield from (DoctorCheck("secrets", text, hint, wrong=True) for text, [hint] in missing.items())
    if known and not missing:
        yield DoctorCheck("secrets", "all that specs name are known here")


async def _store(world: World) -> DoctorCheck:
    if world.store is None:
        place = locate_project_store(world.project)
        above = next(each for each in (Path(place), *Path(place).parents, Path()) if each.exists())
        if "://" not in place and not os.access(above, os.W_OK | os.X_OK):
            text = f"{place} can be no store: {above} is not writable for this user"
            return DoctorCheck(
                "store", text, "give this user the rights, or name another place with `store:`", wrong=True
            )
        return DoctorCheck("store", f"nothing was applied yet; {world.project.store} can be one")
    await probe_store(world.store)
    mount, hint = describe_store_mount(world.store.url)
    return DoctorCheck("store", f"{world.store.url} can be read and written, and create-if-absent holds{mount}", hint)


def _agents(snapshot: StoreSnapshot | None) -> Iterator[DoctorCheck]:
    if snapshot is None:
        return
    alive = [agent for agent in snapshot.agents if agent.alive]
    hint = "`monkey status` and `monkey logs` tell more; docs/troubleshooting.md has most of them"
    yield from (DoctorCheck("agents", problem, hint, wrong=True) for problem in snapshot.problems)
    for agent in alive:
        yield from _metrics(agent)
    for agent in find_departed_agents(snapshot.agents):
        for way in read_exporter_states(agent):
            yield from _left_over(agent, way)
            yield from _lost(agent, way)
    yield DoctorCheck("agents", "1 is alive" if len(alive) == 1 else f"{len(alive)} are alive")


def _metrics(agent: AgentView) -> Iterator[DoctorCheck]:
    """Look at what an agent says of its way to InfluxDB."""
    for way in read_exporter_states(agent):
        if way.get("error"):
            waits = f"; {format_size(read_count(way, 'owed'))} wait there" if read_count(way, "owed") else ""
            text = f"agent {agent.id} cannot send to {way.get('url', '?')}: {way['error']}{waits}"
            yield DoctorCheck("agents", text, "points wait on its disk, and are sent when that is mended", wrong=True)
        yield from _lost(agent, way)


def _left_over(agent: AgentView, way: Mapping[str, Any]) -> Iterator[DoctorCheck]:
    """Say what an agent that is gone had not sent when it was last heard of."""
    if not read_count(way, "owed"):
        return
    why = f" ({way['error']})" if way.get("error") else ""
    owed = format_size(read_count(way, "owed"))
    text = f"agent {agent.id} left with {owed} that may wait for {way.get('url', '?')}{why}"
    hint = "the next agent there sends them; `monkey backfill SWEEP` sends them now, from the store"
    wrong = may_hold_points(agent, way)
    yield DoctorCheck("agents", text if wrong else f"{text}, or were sent since", hint if wrong else "", wrong=wrong)


def _lost(agent: AgentView, way: Mapping[str, Any]) -> Iterator[DoctorCheck]:
    """Say what an agent counted as refused, and as dropped."""
    for key, what in (("dead", "points that InfluxDB refused"), ("dropped", "points that its disk had no room for")):
        if read_count(way, key):
            hint = "raise `spool:`; `monkey backfill SWEEP` brings them back"
            hint = "metrics/*/dead.lp in its directory has them, each with the reason" if key == "dead" else hint
            text = f"agent {agent.id} has {read_count(way, key):,} {what} ({way.get('url', '?')})"
            yield DoctorCheck("agents", text, hint, wrong=True)


async def _influxes(project: Project, snapshot: StoreSnapshot | None) -> AsyncIterator[DoctorCheck]:
    """Look at the InfluxDB of the project, and at others where sweeps that are at work still send."""
    sweeps = list(snapshot.sweeps.values()) if snapshot else []
    used: dict[InfluxSettings, list[SweepView]] = {project.influx: []} if project.influx else {}
    for view in sweeps:
        influx = view.state.revision.settings.influx if view.state.revision else None
        if influx is not None and (influx == project.influx or (view.state.active and view.unfinished)):
            used.setdefault(influx, []).append(view)
    for influx, views in used.items():
        if influx != project.influx:
            names = ", ".join(view.state.name for view in views)
            place = project.influx.url if project.influx else "nowhere"
            text = f"{influx.url} is where {names} still sends; monkey.yaml says {place}"
            yield DoctorCheck("influxdb", text, "`monkey apply` has it send where monkey.yaml says", wrong=True)
        try:
            _check_trust(project, influx)
        except EndpointRefused as exc:
            yield _wrong("influxdb", exc)
            continue
        async for check in _influx(influx, views):
            yield check


def _check_trust(project: Project, influx: InfluxSettings) -> None:
    """Raise EndpointRefused where an InfluxDB must not get its token from here."""
    if influx == project.influx:
        check_endpoints(project, list_report_endpoints(project))
    elif influx.secrets and not is_trusted(project, Endpoint("InfluxDB", influx.url, ("revision",))):
        what = f"{influx.url} was not asked: only a revision in the store names it, and its token would go there"
        raise EndpointRefused(what, hint=f"set {TRUST_VARIABLE}={influx.url} if you trust it")


async def _influx(influx: InfluxSettings, views: list[SweepView]) -> AsyncIterator[DoctorCheck]:
    from monkey.metrics.influx.influx_check import inspect_influx, suggest_retention

    try:
        values = SecretValues().get(influx.secrets)
    except FleetError as exc:
        yield _wrong("influxdb", exc)
        return
    found = await asyncio.to_thread(inspect_influx, influx, values)
    if found.trouble:
        yield DoctorCheck("influxdb", found.trouble, found.hint, wrong=True)
        return
    kept = "" if found.retention is None else f", which keeps points {_while(found.retention)}"
    yield DoctorCheck("influxdb", f"{found.version} at {influx.url} takes points into {influx.bucket!r}{kept}")
    for view in views if found.retention else ():
        began = min((job.started for job in map(view.view, view.ids) if job.started), default=time.time())
        age = time.time() - began
        if found.retention and age > found.retention:
            name, old = view.state.name, format_seconds(age // 60 * 60)
            text = f"{influx.bucket!r} keeps points {_while(found.retention)}, and {name} began {old} ago"
            how = suggest_retention(influx, found.version)
            hint = f"its first points are gone, and backfill cannot bring them back; to keep them: {how}"
            yield DoctorCheck("influxdb", text, hint, wrong=True)


def _while(seconds: float) -> str:
    return f"for {format_seconds(seconds)}" if seconds else "for ever"
