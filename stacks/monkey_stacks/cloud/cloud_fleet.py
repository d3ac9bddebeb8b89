"""A fleet of machines rented at a cloud: a group of them made by Pulumi, whose size is asked of the cloud itself.

What is the same for every cloud. Each has a subclass that knows its API.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from monkey.errors import CorruptObject, FleetError
from monkey.fleet import boot_failures
from monkey.fleet.fleet_port import (
    AuditFinding,
    FleetForecast,
    FleetWork,
    Instance,
    Recount,
    Say,
    TaggedResource,
    keep_silent,
)
from monkey.plan.change import MachineChange
from monkey.protocol.layout import Keys
from monkey.protocol.status.store_snapshot import SnapshotReader
from monkey.spec.job.recipe import JobResources
from monkey.store.store_port import Store
from monkey_stacks import provider_types
from monkey_stacks.bundle.publishing import publish_once
from monkey_stacks.cloud import cloud_descriptions as words
from monkey_stacks.cloud import departures, rent_cost, slot_capacity
from monkey_stacks.cloud.cloud_provider import CloudApi, CloudRequirements
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan, plan_scaling
from monkey_stacks.engine.engine_outcome import ChangeStage, EngineProgress, Identify, StateResource, identify_nothing
from monkey_stacks.engine.pulumi_engine import PulumiEngine

#: Seconds before its time at which a group is no longer given machines.
_LAST_SECONDS = 60.0
#: Seconds between questions whether machines are on their way.
CHECK = 10.0


@dataclass
class CloudFleet(CloudApi):
    """See `monkey.fleet.fleet_port.Fleet`."""

    #: What agents said so far.
    _heard: SnapshotReader | None = None

    def prepare(self) -> None:
        """Begin nothing."""

    def close(self) -> None:
        """Have nothing to give back."""

    async def living(self) -> None:
        """Leave it to the heartbeats."""

    async def preview(self, work: FleetWork) -> FleetForecast:
        """See `Fleet.preview`. Raises FleetError."""
        self.check_secrets(sorted(work.secrets))
        known = await self._known()
        if not known and not work.jobs:
            return FleetForecast(0, 0)
        there = await self._ask(self._look)
        if not work.jobs:
            before = there.desired if there else 0
            return FleetForecast(before, before)
        agreed = self._agreed(known)
        work = rent_cost.limit_work(work, there, agreed)
        asked = await self._ask(self._needs, known, work)
        find, astray = await self._ask(self._lost, known)
        plan = await self._course(there, asked, work)
        notes = slot_capacity.describe_misfits(asked.types, work.asked, in_order=not self._cloud.spot)
        notes += words.describe_larger_disk(asked.wanted)
        notes += await asyncio.to_thread(self._notes, work, there, astray)
        if known:
            engine = await self._engine(keep_silent, find)
            outcome = await engine.preview(self._program(asked), refresh=True)
            parts = [words.made_again(self._change(each), known) for each in outcome.changed]
            notes += outcome.warnings
        else:
            parts = [self._creation(asked)]
        parts = words.merge_changes([*parts, *(self._postponed(there, work) if plan.after else [])])
        changes = [*parts, *self._ended(plan, asked, parts), *map(words.describe_orphan, astray)]
        cost = rent_cost.forecast_cost(self._cloud, work, there, plan, agreed)
        return FleetForecast(plan.before, plan.after, tuple(changes), tuple(notes), asked.wanted.inputs, cost)

    async def converge(self, work: FleetWork, say: Say, recount: Recount | None = None) -> None:
        """See `Fleet.converge`. Raises FleetError, StoreError."""
        self._say, self._checked = say, float("-inf")
        engine = await self._engine(say)
        async with engine.hold() as session:
            if session.waited and recount is not None:
                work = await recount()
            known = await engine.resources()
            if work.through is not None:
                work = rent_cost.limit_work(work, await asyncio.to_thread(self._look), self._agreed(known))
            asked = await self._ask(self._needs, known, work)
            await publish_once(engine.store, asked.bundle)
            await boot_failures.forget_boot_failures(engine.store, Keys(self.project).boots, self.name)
            there, gone = await departures.seen_off(self._reader(engine.store), self.name, self._look)
            plan = await self._course(there, asked, work, gone)
            self.touched = True
            await asyncio.to_thread(self._end, plan, asked, known, say)
            engine.identify = await asyncio.to_thread(self._clear, known, say)
            outcome = await session.up(self._program(asked), refresh=True)
            for warning in outcome.warnings:
                say(f"warning: {warning}")
            if outcome.failures:
                raise words.make_failure(outcome.failures, self.name, self._translate)
            await asyncio.to_thread(self._size, plan, asked, work, say)

    def shortage(self, asked: JobResources) -> str:
        """See `Fleet.shortage`: the cloud is asked for types of which nothing is known yet."""
        with words.name_provider(self.name, self._cloud.region):
            return slot_capacity.describe_type_shortage(self._machines(), asked)

    async def examine(self) -> str:
        """See `Fleet.examine`: what `preview` asks, but for the state of Pulumi's."""
        known = await self._known()
        await self._ask(self._look)
        await self._ask(self._needs, known, FleetWork(0))
        types, image = " or ".join(self._cloud.types), self._cloud.image or "Debian"
        return f"{self.name}: {self.called} has {types}, and the image {image}, in {self._cloud.region}"

    def check_secrets(self, names: Sequence[str]) -> None:
        """See `Fleet.check_secrets`: machines read them where monkey.yaml says."""
        if missing := [name for name in names if name not in self._cloud.secrets]:
            form, other = self.secret_form
            raise FleetError(
                f"nobody says where machines read the secret {missing[0]}",
                hint=f"write secrets: {{{missing[0]}: {form}}} beside type: {self.type} in monkey.yaml, or {other}",
            )

    async def check(self) -> bool:
        """See `Fleet.check`: machines are on their way as long as the cloud only has none to give now."""
        store = self.opened()
        if store is None or time.monotonic() - self._checked < CHECK:
            return True
        self._checked = time.monotonic()
        there = await asyncio.to_thread(self._look)
        if there is None:
            return True
        self.booting = 0 < there.desired <= len(there.members)
        if not there.desired:
            await boot_failures.check_boot_failures(store, Keys(self.project).boots, self.name)
            return False
        if not there.members:
            why, passing = await asyncio.to_thread(self._trouble)
            if why and not passing:
                raise FleetError(f"provider {self.name!r} gets no machine: {why}", hint="mend it, and apply again")
        return not self.booting or not there.ids <= await departures.find_departed(self._reader(store), self.name)

    async def strange(self) -> None:
        """Find none: agents have the environment of their machines."""

    def last_words(self) -> str:
        """Have none: they are on the machines."""
        return "  (on the machines; `monkey status` tells of those that could not boot)"

    async def instances(self) -> tuple[Instance, ...]:
        """See `Fleet.instances`: the group by the state, and its machines where the cloud can be asked."""
        if not (known := await self._known()):
            return await self._unwritten()
        if (elsewhere := self._elsewhere(known)) is not None:
            return (Instance("group", (), f"{elsewhere.text}; {elsewhere.hint}", runs=False),)
        cloud = self._cloud
        about = f"{self.group_word} in {cloud.region}, at most {cloud.max_instances} × {' or '.join(cloud.types)}"
        try:
            there = await asyncio.to_thread(self._look)
        except FleetError as exc:
            return (Instance("group", (), f"{about}; {exc.message}", runs=False),)
        if there is None:
            about = words.no_group(self.group_word, [each.name for each in known])
            return (Instance("parts", (), about, runs=False),)
        if there.desired:
            about += f"; {there.desired} asked for, {self._emptied(there)}"
        return (
            Instance("group", (), about, runs=False),
            *(Instance(each.id, (each.id,), each.about) for each in there.members),
        )

    def _elsewhere(self, known: Sequence[StateResource]) -> AuditFinding | None:
        """Return where the fleet is, and what to do, where monkey.yaml says another place."""
        try:
            self._check_place(known)
        except FleetError as exc:
            return AuditFinding(self.called, exc.message, exc.hint or "write that place into monkey.yaml")
        return None

    async def _unwritten(self) -> tuple[Instance, ...]:
        """Return what the cloud has of a fleet of which the state knows nothing: it may have been lost."""
        if (store := self.opened()) is None:
            return ()
        try:
            _, astray = await asyncio.to_thread(self._lost, ())
        except FleetError as exc:
            if not await store.list(f"{Keys(self.project).machines}{self.name}/"):
                return ()  # nothing was ever made
            return (Instance("group", (), f"it is not known whether there is one: {exc.message}", runs=False),)
        return tuple(Instance(each, (), "no apply has written it down", runs=False) for each in astray)

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """See `Fleet.audit`."""
        known = await self._known()
        if not known and self.opened() is None:
            return ()
        if (elsewhere := self._elsewhere(known)) is not None:
            return (elsewhere,)
        heard = await self._jobs() if busy else None
        try:
            return await asyncio.to_thread(self._audit, known, heard)
        except FleetError as exc:
            return (AuditFinding(self.called, f"cannot be asked: {exc.message}", exc.hint or "try again"),)

    async def holdings(self) -> tuple[TaggedResource, ...]:
        """See `Fleet.holdings`; that the cloud cannot be asked, or the fleet is elsewhere, is told by `audit`."""
        try:
            with contextlib.suppress(CorruptObject):  # what there is costs all the same
                self._check_place(await self._known())
            return await asyncio.to_thread(self._holdings)
        except FleetError:
            return ()

    async def destroy(self, say: Say) -> None:
        """See `Fleet.destroy`. Raises FleetError where something would not go."""
        if self.opened() is None:
            return
        self._check_place(await self._known())
        self._say = say
        engine = await self._engine(say)
        async with engine.hold() as session:
            known = await engine.resources()
            engine.identify, _ = await asyncio.to_thread(self._lost, known)
            self.touched = True
            await asyncio.to_thread(self._remove_lone, say)
            outcome = await session.destroy()
            for warning in outcome.warnings:
                say(f"warning: {warning}")
            if outcome.failures:
                raise words.make_failure(outcome.failures, self.name, self._translate)
            await asyncio.to_thread(self._remove_rest, say)

    async def _known(self) -> tuple[StateResource, ...]:
        """Return what Pulumi's state has."""
        store = self.opened()
        known = await PulumiEngine(store, self.project, self.name).resources() if store is not None else ()
        provider_types.check_provider_type(known, self.type, self.name)
        return known

    async def _engine(self, say: Say, identify: Identify = identify_nothing) -> PulumiEngine:
        store = self.opened()
        assert store is not None
        keys = await asyncio.to_thread(self._keys)
        return PulumiEngine(store, self.project, self.name, say, self._watch, identify, keys)

    def _reader(self, store: Store) -> SnapshotReader:
        if self._heard is None:
            self._heard = SnapshotReader(store, Keys(self.project))
        return self._heard

    async def _course(
        self, there: MachineGroup | None, asked: CloudRequirements, work: FleetWork, gone: frozenset[str] = frozenset()
    ) -> ScalingPlan:
        """Return what is to become of the machines; who works on how much is told by heartbeats."""
        needed = slot_capacity.machines_for(asked.types, work.jobs, work.asked, self.provider.max_slots)
        if work.expires is not None and work.expires < time.time() + _LAST_SECONDS:
            needed = 0
        wanted, jobs = asked.wanted, {}
        if there is not None and len(there.members) > wanted.max_instances:
            jobs = await self._jobs()
        return plan_scaling(there, needed, wanted.max_instances, wanted.types, wanted.made, jobs, gone)

    async def _jobs(self) -> dict[str, int]:
        """Return how many jobs run on each machine whose agent lives, by the machines' ids."""
        store = self.opened()
        assert store is not None
        agents = (await self._reader(store).read([])).alive(self.name)
        return {agent.id.split("/")[1]: agent.jobs for agent in agents}

    def _ended(
        self, plan: ScalingPlan, asked: CloudRequirements, parts: Sequence[MachineChange]
    ) -> list[MachineChange]:
        """Return which machines end, and why."""
        replaced = [words.describe_outdated(each, asked.wanted, self.type_key, parts) for each in plan.outdated]
        most = asked.wanted.max_instances
        return [*replaced, *(words.describe_surplus(each, plan.after, most) for each in plan.surplus)]

    def _notes(self, work: FleetWork, there: MachineGroup | None, astray: Sequence[str]) -> list[str]:
        said = []
        if work.expires is not None and work.expires < time.time() + _LAST_SECONDS:
            said.append("warning: its sweeps have expired: no machine is made; `monkey extend SWEEP 6h` goes on")
        if astray:
            what = f"{self.called} has what no apply has written down: {words.join_names(astray)}"
            said.append(f"warning: {what}; applying takes it away")
        if there is not None and there.desired > len(there.members):
            why, _ = self._trouble()
            said += [f"warning: {there.desired - len(there.members)} machines have not come: {why}"] if why else []
        return said

    def _watch(self, step: EngineProgress) -> None:
        """Tell of a step that has ended; called in threads of Pulumi's."""
        with self._saying:
            if self._say is None or step.stage is ChangeStage.BEGAN:
                return
            done = step.stage is ChangeStage.DONE
            self._say(f"{step.change.name}: {words.DONE.get(step.change.op, step.change.op) if done else 'FAILED'}")
