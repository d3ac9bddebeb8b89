"""The fleet of the lab's own hosts: Pulumi converges them over SSH to what monkey.yaml says.

A plan looks at the hosts and reads the state as data. Pulumi and its library, which is an extra, only change hosts.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Recount, Say, keep_silent
from monkey.fleet.fleet_records import AuditFinding, FleetForecast, FleetWork, Instance
from monkey.fleet.secret_values import SecretValues
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.mounts import spell_mounts
from monkey.spec.project.provider import Provider
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.store.store_port import Store
from monkey_stacks import store_credentials
from monkey_stacks.bundle.bundle import describe_version
from monkey_stacks.engine.engine_outcome import ChangeStage, EngineProgress, ResourceOp, StateResource
from monkey_stacks.engine.installation import warn_of_missing_library
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from monkey_stacks.ssh import machine_audit, reachability, relocation
from monkey_stacks.ssh.descriptions import (
    check_apart,
    describe_instance,
    describe_limits,
    describe_machine_change,
    describe_missing_runtimes,
    describe_new_host,
    warn_of_missing_runtimes,
    warn_of_unusable_hosts,
)
from monkey_stacks.ssh.host_resource import (
    HOST_TYPE,
    ProviderEnvironment,
    inspect_host_record,
    list_bound_inputs,
    list_host_changes,
    make_host_inputs,
    make_identity,
    preview_outputs,
    refresh_outputs,
)
from monkey_stacks.ssh.host_state import HostPlan
from monkey_stacks.state.state_rules import StateRules
from monkey_stacks.store_credentials import StoreCredentials

#: Largest number of bytes of secrets, credentials and signers together: Linux takes no longer variable.
_MOST = 120_000
#: Words for people when a step is done.
_DONE = {
    ResourceOp.CREATE: "agent started",
    ResourceOp.UPDATE: "updated",
    ResourceOp.REPLACE: "moved",
    ResourceOp.DELETE: "everything taken away",
}


def _pickle() -> dict[str, str]:
    from monkey_stacks.ssh import program  # loads Pulumi's library

    return {HOST_TYPE: program.serialize_host_provider()}


#: What the state of hosts may have.
STATE_RULES = StateRules("ssh", {HOST_TYPE}, {"pulumi-python": ()}, inspect_host_record, _pickle)


def make_fleet(
    name: str,
    provider: Provider,
    project: str,
    store_url: str,
    opened: Callable[[], Store | None],
    signers: Callable[[], EntrySigners],
) -> SshFleet:
    """Return the fleet of a provider; `opened` returns the store at `store_url`, once there is one.

    `signers` returns those that agents are to obey.
    """
    return SshFleet(name, provider, project, store_url, opened, signers)


@dataclass
class SshFleet:
    """Agents on hosts, for one store and project; see `monkey.fleet.fleet_port.Fleet`."""

    name: str
    provider: Provider
    project: str
    store_url: str
    opened: Callable[[], Store | None]
    signers: Callable[[], EntrySigners]
    type: str = "ssh"
    #: Called with each step as Pulumi takes it.
    _say: Say | None = None
    _said: dict[str, str] = field(default_factory=dict)
    _saying: threading.Lock = field(default_factory=threading.Lock)

    async def preview(self, work: FleetWork) -> FleetForecast:
        """See `Fleet.preview`. Raises FleetError where no host could reach the store."""
        known = await self._known()
        hosts = self._hosts(work, known)
        inputs = self._inputs(hosts)
        told = {"hosts": list_bound_inputs(inputs)}
        if not work.jobs and known.keys() <= set(self.provider.hosts):
            return FleetForecast(len(known), len(known), inputs=told)
        if work.jobs:
            reachability.check_reachability(self.store_url, self.provider.hosts)
        given = store_credentials.find_credentials(self.store_url)
        signers = self.signers().format_for_plan()
        handed = replace(self._handed(work, given, signers), images=any(work.images))
        notes = tuple(filter(None, [given.warning(datetime.now(UTC))]))
        new = [host for host in hosts if host not in known]
        moved = relocation.find_moving(known, inputs)
        seen, fresh = await asyncio.gather(self._found(known, handed), self._look([*new, *moved], images=handed.images))
        check_apart({**{host: seen[host] for host in hosts if host in seen}, **fresh})
        limits = describe_limits(self.name, work, {**seen, **fresh}, self.provider.max_slots) if work.jobs else []
        seen |= {host: relocation.add_move_trouble(fresh.pop(host), seen[host]) for host in moved}
        changes = [describe_new_host(host, told_of) for host, told_of in fresh.items()]
        changes += [describe_machine_change(each, seen[each.name]) for each in list_host_changes(inputs, known, seen)]
        order = [*hosts, *known]
        changes.sort(key=lambda each: order.index(each.machine))
        lacking = warn_of_missing_library() if changes else ()
        notes = (*notes, *(limits if changes else ()), *warn_of_unusable_hosts(hosts, changes), *lacking)
        notes += tuple(warn_of_missing_runtimes(hosts, {**seen, **fresh}))
        return FleetForecast(len(known), len(hosts), tuple(changes), notes, told)

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        """See `Fleet.converge`. Raises FleetError where not one host could be converged, StoreError."""
        from monkey_stacks.ssh import program as resources

        self._say = say
        given, signers = store_credentials.find_credentials(self.store_url), self.signers().format_for_machine()
        engine = self._engine(self._handed(work, given, signers), say)
        async with engine.hold() as session:
            if session.waited and recount is not None:
                work = await recount()
            known = {resource.name: resource for resource in await engine.resources()}
            hosts = self._hosts(work, known)
            inputs = self._inputs(hosts)
            hindered = relocation.find_hindered(await self._look(relocation.find_moving(known, inputs)))
            program = resources.make_program(relocation.keep_hindered(inputs, known, hindered))
            outcome = await session.up(program, refresh=True)
        for warning in outcome.warnings:
            say(f"warning: {warning}")
        failed = {failure.name for failure in outcome.failures}
        for host in hindered.keys() - failed:
            why = hindered[host].removeprefix(f"{host}: ").replace("\n", "\n    ")
            say(f"{host}: FAILED: left as it was, for it cannot be moved: {why}")
        if hosts and set(hosts) <= failed | hindered.keys():
            raise FleetError(
                f"no machine of provider {self.name!r} could be set up; why is told above",
                hint="mend one, and apply again; or name another `provider:` in the spec",
            )

    async def check_runtimes(self) -> list[tuple[str, str]]:
        """See `RuntimeCheckable.check_runtimes`."""
        return describe_missing_runtimes(await self._look(self.provider.hosts, images=True))

    def describe_shortage(self, asked: JobResources) -> str:
        """See `Fleet.describe_shortage`: agents report in heartbeats what their hosts lack."""
        return ""

    def check_secrets(self, names: Sequence[str]) -> None:
        """See `Fleet.check_secrets`: hosts get the values that this machine knows."""
        SecretValues().get(names)

    async def has_workers(self) -> bool:
        """See `Fleet.has_workers`: hosts restart their agents; heartbeats tell which of them live."""
        return True

    def recent_log(self) -> str:
        """See `Fleet.recent_log`."""
        return f"  (on the hosts, in {self.provider.workdir}/hosts/*/*/*/agent.log)"

    async def instances(self) -> tuple[Instance, ...]:
        """See `Fleet.instances`: in the order of monkey.yaml; then those that it no longer names."""
        order = {host: at for at, host in enumerate(self.provider.hosts)}
        known = sorted((await self._known()).values(), key=lambda each: (order.get(each.name, len(order)), each.name))
        return tuple(map(describe_instance, known))

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """See `Fleet.audit`: look at every host of monkey.yaml and of the state."""
        return await machine_audit.audit_hosts(self._wanted(), self.provider.hosts, await self._known(), busy=busy)

    async def destroy(self, say: Say) -> None:
        """See `Fleet.destroy`. Raises FleetError where a host could not be cleared."""
        if self.opened() is None:
            return
        self._say = say
        outcome = await self._engine(None, say).destroy()
        for warning in outcome.warnings:
            say(f"warning: {warning}")
        outcome.check()

    async def _known(self) -> dict[str, StateResource]:
        """Return the resources in Pulumi's state, by host."""
        if self.opened() is None:
            return {}
        known = await self._engine(None, None).resources()
        return {resource.name: resource for resource in known}

    def _hosts(self, work: FleetWork, known: Iterable[str]) -> list[str]:
        """Return the hosts that are to have an agent: all while there is work, otherwise those that have one."""
        there = set(known)
        return [host for host in self.provider.hosts if work.jobs or host in there]

    async def _found(
        self, known: Mapping[str, StateResource], handed: ProviderEnvironment
    ) -> dict[str, dict[str, Any]]:
        """Look at all hosts that have an agent, at once; return their outputs, by host."""
        asked = [{**each.inputs, **each.outputs} for each in known.values()]
        told = await asyncio.gather(*(asyncio.to_thread(refresh_outputs, props, handed) for props in asked))
        return dict(zip(known, told, strict=True))

    async def _look(self, hosts: Sequence[str], *, images: bool = False) -> dict[str, dict[str, Any]]:
        """Look at hosts that have no agent yet, at once; return their outputs, by host."""
        wanted = replace(self._wanted(), images=images)
        told = await asyncio.gather(*(asyncio.to_thread(preview_outputs, host, wanted) for host in hosts))
        return dict(zip(hosts, told, strict=True))

    def _engine(self, handed: ProviderEnvironment | None, say: Say | None) -> PulumiEngine:
        store = self.opened()
        assert store is not None
        env = handed.environment if handed is not None else {}
        return PulumiEngine(
            store, self.project, self.name, STATE_RULES, say or keep_silent, self._watch, _identify, env
        )

    def _watch(self, step: EngineProgress) -> None:
        """Report a step that has ended; called in Pulumi's threads."""
        with self._saying:
            if self._say is None or step.stage is ChangeStage.BEGAN:
                return
            name = step.change.name
            failed = f"FAILED: {step.text.removeprefix(f'{name}: ')}"
            what = _DONE.get(step.change.op, step.change.op) if step.stage is ChangeStage.DONE else failed
            said = f"{name}: {what}".replace("\n", "\n    ")
            if said != self._said.get(step.change.name):  # a replacement is done twice, there and here
                self._say(said)
            self._said[step.change.name] = said

    def _wanted(self) -> HostPlan:
        of = self.provider
        url = store_credentials.strip_profile(self.store_url)
        slots, begun = of.max_slots, self.opened() is not None
        mounts = spell_mounts(of.mounts) if of.mounts else ""
        about = of.workdir, slots, of.idle_timeout, of.cache_size, of.gpus, of.runtime, of.resources, of.lease, mounts
        return HostPlan(url, self.project, self.name, *about, begun=begun)

    def _inputs(self, hosts: Iterable[str]) -> list[dict[str, Any]]:
        wanted = self._wanted()
        agent = describe_version(wanted.scheme)
        return [make_host_inputs(host, wanted, agent) for host in hosts]

    def _handed(self, work: FleetWork, given: StoreCredentials, signers: str) -> ProviderEnvironment:
        """Return the secrets, credentials and signers that hosts get, and that no state keeps. Raises FleetError."""
        values, kept = SecretValues().collect(work.secrets, work.others)
        handed = ProviderEnvironment(values, tuple(kept), given.variables, signers, idle=not work.jobs)
        if len(json.dumps(handed.environment)) > _MOST:
            raise FleetError(
                f"the secrets of provider {self.name!r} and the list of signers are too long: "
                f"expected {_MOST:,} bytes in all at most, found {len(signers):,} of signers",
                hint="keep long secrets in a file on the hosts, and its name in the secret",
            )
        return handed


def _identify(type_: str, inputs: Mapping[str, Any]) -> str:
    return make_identity(inputs)
