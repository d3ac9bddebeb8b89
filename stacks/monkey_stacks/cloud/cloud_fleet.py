"""A fleet of machines rented at a cloud, a group made by Pulumi and sized by the cloud: all but what `CloudApi` has."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from monkey.errors import CorruptObject, FleetError
from monkey.fleet import boot_failures
from monkey.fleet.fleet_port import Recount, Say, keep_silent
from monkey.fleet.fleet_records import AuditFinding, FleetForecast, FleetWork, Instance, TaggedResource
from monkey.protocol.layout import Keys
from monkey.protocol.status.store_snapshot import SnapshotReader
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.provider import Provider
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.store.store_port import Store
from monkey_stacks.bundle.publishing import publish_once
from monkey_stacks.cloud import cloud_descriptions as words
from monkey_stacks.cloud import departures, rent_cost, slot_capacity
from monkey_stacks.cloud.cloud_api import CloudApi, CloudRequirements
from monkey_stacks.cloud.forecast_notes import LAST_SECONDS, describe_endings, warn_of_group
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan, plan_scaling
from monkey_stacks.engine.engine_outcome import ChangeStage, EngineProgress, Identify, StateResource, identify_nothing
from monkey_stacks.engine.pulumi_engine import PulumiEngine

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Seconds between questions whether machines are on their way.
CHECK = 10.0


@dataclass
class CloudFleet:
    """Machines of a cloud, for one store and project, that obey `signers()`; see `monkey.fleet.fleet_port.Rented`."""

    name: str
    provider: Provider
    project: str
    opened: Callable[[], Store | None]
    api: CloudApi
    signers: Callable[[], EntrySigners]
    booting: bool = False
    touched: bool = False
    #: Receives each step as Pulumi takes it.
    _say: Say | None = None
    _saying: threading.Lock = field(default_factory=threading.Lock)
    #: When the cloud was last asked by `has_workers`, on the monotonic clock.
    _checked: float = float("-inf")
    #: What agents said so far.
    _heard: SnapshotReader | None = None

    @property
    def type(self) -> str:
        """See `Fleet.type`."""
        return self.api.type

    @property
    def _store(self) -> Store:
        store = self.opened()
        assert store is not None
        return store

    async def preview(self, work: FleetWork) -> FleetForecast:
        """See `Fleet.preview`. Raises FleetError."""
        self.check_secrets(sorted(work.secrets))
        known = await self._known()
        if not known and not work.jobs:
            return FleetForecast(0, 0)
        there = await self._ask(self.api.find_group)
        before = there.desired if there else 0
        if not work.jobs:
            before = max(before, len(there.members) if there else 0)  # those too that are still ending
            return FleetForecast(before, before)
        agreed = self.api.recall_bounds(known)
        work = rent_cost.limit_work(work, there, agreed)
        asked = await self._ask(self.api.find_requirements, known, work, self.signers().format_for_plan())
        find, orphans = await self._ask(self.api.find_orphans, known)
        plan = await self._plan_scaling(there, asked, work)
        notes = slot_capacity.describe_misfits(asked.types, work.asked, in_order=not self.provider.rented.spot)
        notes += words.describe_larger_disk(asked.wanted)
        notes += await asyncio.to_thread(warn_of_group, self.api, work, there, orphans)
        if known:
            engine = await self._engine(keep_silent, find)
            outcome = await engine.preview(self.api.make_program(asked), refresh=True)
            parts = [words.explain_remaking(self.api.describe_change(each), known) for each in outcome.changed]
            notes += outcome.warnings
        else:
            parts = [self.api.describe_creation(asked)]
        parts = words.merge_changes([*parts, *(self.api.describe_postponement(there, work) if plan.after else [])])
        changes = [*parts, *describe_endings(plan, asked.wanted, self.api.type_key, parts)]
        changes += map(words.describe_orphan, orphans)
        cost = rent_cost.forecast_cost(self.provider.rented, work, there, plan, agreed)
        return FleetForecast(plan.before, plan.after, tuple(changes), tuple(notes), asked.wanted.bound, cost)

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        """See `Fleet.converge`. Raises FleetError, StoreError."""
        self._say, self._checked = say, float("-inf")
        signers = self.signers().format_for_machine()
        engine = await self._engine(say)
        async with engine.hold() as session:
            if session.waited and recount is not None:
                work = await recount()
            known = await engine.resources()
            if work.through is not None:
                work = rent_cost.limit_work(
                    work, await asyncio.to_thread(self.api.find_group), self.api.recall_bounds(known)
                )
            asked = await self._ask(self.api.find_requirements, known, work, signers)
            await publish_once(engine.store, asked.bundle, signers, say, bars)
            await boot_failures.forget_boot_failures(engine.store, Keys(self.project).boots, self.name)
            there, gone = await departures.wait_for_departures(self._reader(), self.name, self.api.find_group)
            plan = await self._plan_scaling(there, asked, work, gone)
            self.touched = True
            await asyncio.to_thread(self.api.end_machines, plan, asked, known, say)
            engine.identify = await asyncio.to_thread(self.api.clear_orphans, known, say)
            outcome = await session.up(self.api.make_program(asked), refresh=True)
            words.report_outcome(outcome, self.name, self.api.translate_error, say)
            await asyncio.to_thread(self.api.apply_size, plan, asked, work, say)

    def describe_shortage(self, asked: JobResources) -> str:
        """See `Fleet.describe_shortage`: the cloud is asked for types of which nothing is known yet."""
        with words.name_provider(self.name, self.provider.rented.region):
            return slot_capacity.describe_type_shortage(self.api.read_machine_types(), asked)

    async def check_offer(self) -> str:
        """See `Rented.check_offer`: what `preview` asks, but for the state of Pulumi's."""
        known = await self._known()
        await self._ask(self.api.find_group)
        await self._ask(self.api.find_requirements, known, FleetWork(0), self.signers().format_for_plan())
        types, image = " or ".join(self.provider.rented.types), self.provider.rented.image or "Debian"
        return f"{self.name}: {self.api.called} has {types}, and the image {image}, in {self.provider.rented.region}"

    def check_secrets(self, names: Sequence[str]) -> None:
        """See `Fleet.check_secrets`: machines read them where monkey.yaml says."""
        if missing := [name for name in names if name not in self.provider.rented.secrets]:
            form, other = self.api.secret_form
            raise FleetError(
                f"nobody says where machines read the secret {missing[0]}",
                hint=f"write secrets: {{{missing[0]}: {form}}} beside type: {self.type} in monkey.yaml, or {other}",
            )

    async def has_workers(self) -> bool:
        """See `Fleet.has_workers`: machines are on their way as long as the cloud only has none to give now."""
        if (store := self.opened()) is None or time.monotonic() - self._checked < CHECK:
            return True
        self._checked = time.monotonic()
        if (there := await asyncio.to_thread(self.api.find_group)) is None:
            return True
        self.booting = 0 < there.desired <= len(there.members)
        if self.booting and not await departures.wait_for_end(self._reader(), self.name, there, self.api.find_group):
            return True
        if self.booting or not there.desired:
            await boot_failures.check_boot_failures(store, Keys(self.project).boots, self.name)
            return False
        if not there.members:
            why, passing = await asyncio.to_thread(self.api.explain_trouble)
            if why and not passing:
                raise FleetError(f"provider {self.name!r} gets no machine: {why}", hint="mend it, and apply again")
        return True

    def recent_log(self) -> str:
        """See `Fleet.recent_log`."""
        return "  (on the machines; `monkey status` tells of those that could not boot)"

    async def instances(self) -> tuple[Instance, ...]:
        """See `Fleet.instances`: the group by the state, and its machines where the cloud can be asked."""
        if not (known := await self._known()):
            return await self._unwritten()
        if (elsewhere := self._elsewhere(known)) is not None:
            return (Instance("group", (), f"{elsewhere.text}; {elsewhere.hint}", runs=False),)
        cloud = self.provider.rented
        about = f"{self.api.group_word} in {cloud.region}, at most {cloud.max_instances} × {' or '.join(cloud.types)}"
        try:
            there = await asyncio.to_thread(self.api.find_group)
        except FleetError as exc:
            return (Instance("group", (), f"{about}; {exc.message}", runs=False),)
        if there is None:
            about = words.describe_missing_group(self.api.group_word, [each.name for each in known])
            return (Instance("parts", (), about, runs=False),)
        if there.desired:
            about += f"; {there.desired} asked for, {self.api.describe_emptying(there)}"
        return (
            Instance("group", (), about, runs=False),
            *(Instance(each.id, (each.id,), each.about) for each in there.members),
        )

    def _elsewhere(self, known: Sequence[StateResource]) -> AuditFinding | None:
        """Return where the fleet is, and what to do, where monkey.yaml says another place."""
        try:
            self.api.check_place(known)
        except FleetError as exc:
            return AuditFinding(self.api.called, exc.message, exc.hint or "write that place into monkey.yaml")
        return None

    async def _unwritten(self) -> tuple[Instance, ...]:
        """Return what the cloud has of a fleet of which the state knows nothing: it may have been lost."""
        if (store := self.opened()) is None:
            return ()
        try:
            _, orphans = await asyncio.to_thread(self.api.find_orphans, ())
        except FleetError as exc:
            if not await store.list(f"{Keys(self.project).machines}{self.name}/"):
                return ()  # nothing was ever made
            return (Instance("group", (), f"it is not known whether there is one: {exc.message}", runs=False),)
        return tuple(Instance(each, (), "no apply has written it down", runs=False) for each in orphans)

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """See `Auditable.audit`."""
        known = await self._known()
        if not known and self.opened() is None:
            return ()
        if (elsewhere := self._elsewhere(known)) is not None:
            return (elsewhere,)
        heard = await self._jobs() if busy else None
        try:
            return await asyncio.to_thread(self.api.audit_stack, known, heard)
        except FleetError as exc:
            return (AuditFinding(self.api.called, f"cannot be asked: {exc.message}", exc.hint or "try again"),)

    async def tagged_resources(self) -> tuple[TaggedResource, ...]:
        """See `Rented.tagged_resources`; `audit` tells where the cloud does not answer, or the fleet is elsewhere."""
        try:
            with contextlib.suppress(CorruptObject):  # what there is costs all the same
                self.api.check_place(await self._known())
            return await asyncio.to_thread(self.api.list_resources)
        except FleetError:
            return ()

    async def destroy(self, say: Say, *, idle: bool = False) -> None:
        """See `Rented.destroy`. Raises FleetError where something would not go."""
        if self.opened() is None:
            return
        self.api.check_place(await self._known())
        self._say = say
        engine = await self._engine(say)
        async with engine.hold() as session:
            known = await engine.resources()
            there = await asyncio.to_thread(self.api.find_group) if idle else None
            if there is not None and (there.desired or there.members):
                asked = "another apply has asked for machines" if there.desired else "its machines are still ending"
                say(f"{asked}: a later apply removes the rest")
                return
            engine.identify, _ = await asyncio.to_thread(self.api.find_orphans, known)
            self.touched = True
            await asyncio.to_thread(self.api.end_loose_machines, say)
            outcome = await session.destroy()
            words.report_outcome(outcome, self.name, self.api.translate_error, say)
            await asyncio.to_thread(self.api.remove_rest, say)

    async def _ask(self, what: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what the cloud is asked for; its errors name the provider."""
        with words.name_provider(self.name, self.provider.rented.region):
            return await asyncio.to_thread(what, *args, **kwargs)

    async def _known(self) -> tuple[StateResource, ...]:
        """Return what Pulumi's state has."""
        store = self.opened()
        engine = PulumiEngine(store, self.project, self.name, self.api.rules) if store is not None else None
        return await engine.resources() if engine is not None else ()

    async def _engine(self, say: Say, identify: Identify = identify_nothing) -> PulumiEngine:
        keys = await asyncio.to_thread(self.api.read_credentials)
        at, checked = (self._store, self.project, self.name, self.api.rules), self.api.check_ownership
        return PulumiEngine(*at, say, self._watch, identify, keys, self.api.pinned, checked)

    def _reader(self) -> SnapshotReader:
        self._heard = self._heard or SnapshotReader(self._store, Keys(self.project), self.signers())
        return self._heard

    async def _plan_scaling(
        self, there: MachineGroup | None, asked: CloudRequirements, work: FleetWork, gone: frozenset[str] = frozenset()
    ) -> ScalingPlan:
        """Return what is to become of the machines; heartbeats tell how many jobs run where."""
        of = self.provider
        needed = slot_capacity.count_needed_machines(asked.types, work.jobs, work.asked, of.max_slots, of.resources)
        if work.expires is not None and work.expires < time.time() + LAST_SECONDS:
            needed = 0
        wanted = asked.wanted
        jobs = await self._jobs() if there is not None and len(there.members) > wanted.max_instances else {}
        return plan_scaling(there, needed, wanted.max_instances, wanted.types, wanted.made, jobs, gone)

    async def _jobs(self) -> dict[str, int]:
        """Return how many jobs run on each machine whose agent lives, by the machines' ids."""
        agents = (await self._reader().read([])).alive(self.name)
        return {agent.id.split("/")[1]: agent.jobs for agent in agents}

    def _watch(self, step: EngineProgress) -> None:
        """Tell of a step that has ended; called in threads of Pulumi's."""
        with self._saying:
            if self._say is None or step.stage is ChangeStage.BEGAN:
                return
            done = step.stage is ChangeStage.DONE
            self._say(f"{step.change.name}: {words.DONE.get(step.change.op, step.change.op) if done else 'FAILED'}")
