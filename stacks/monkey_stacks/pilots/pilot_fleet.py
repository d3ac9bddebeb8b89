"""A fleet of pilots: agents that an engine starts and ends, as many as there is work for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from monkey.errors import FleetError
from monkey.fleet import boot_failures
from monkey.fleet.fleet_port import Recount, Say
from monkey.fleet.fleet_records import AuditFinding, FleetForecast, FleetWork, Instance
from monkey.fleet.machine_capacity import MEMORY_BY_LOOKS, describe_memory_limits
from monkey.fleet.secret_values import SecretValues, quote_secret_line
from monkey.plan.cost import MachineChange
from monkey.protocol.layout import Keys
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.provider import Provider
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.store.store_port import Store
from monkey_stacks import store_credentials
from monkey_stacks.bundle.wheels import check_packaging
from monkey_stacks.cloud.slot_capacity import describe_type_shortage
from monkey_stacks.engine.installation import warn_of_missing_library
from monkey_stacks.pilots.engine_marker import forget_marker, read_marker, write_marker
from monkey_stacks.pilots.leaving_time import count_leaving_seconds
from monkey_stacks.pilots.pilot_counts import count_wanted_pilots, list_missing_images, warn_of_long_jobs
from monkey_stacks.pilots.pilot_engine import EngineState, Pilot, PilotEngine, PilotRequest, mark_image
from monkey_stacks.pilots.seldom_question import BETWEEN_SECONDS, SeldomQuestion

#: The name under which `list instances` and `destroy` show what lies at the engine without a pilot.
_REST = "files"
#: Seconds after which pilots that were submitted are looked for; less than `wait_for_agents` waits.
_TRUSTED_SECONDS = 8.0


@dataclass
class PilotFleet:
    """Pilots of one provider, for one store and project; see `monkey.fleet.fleet_port.Fleet`."""

    name: str
    provider: Provider
    project: str
    store_url: str
    opened: Callable[[], Store | None]
    signers: Callable[[], EntrySigners]
    engine: PilotEngine
    _question: SeldomQuestion[EngineState] = field(init=False)
    #: The marks of images for which the last preview or converge wanted pilots.
    _asked: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Ask the engine nothing yet."""
        self._question = SeldomQuestion(self.engine.list_pilots)

    @property
    def type(self) -> str:
        """See `Fleet.type`."""
        return self.engine.type

    async def preview(self, work: FleetWork) -> FleetForecast:
        """See `Fleet.preview`: counts the pilots that wait, too. Raises FleetError."""
        inputs = {"pilots": dict(self.engine.bound)}
        self._asked = frozenset(map(mark_image, self._wanted(work))) if work.jobs else frozenset()
        if not work.jobs:
            before = len((await self._question.ask()).pilots) if await self._marked() else 0
            return FleetForecast(before, before, inputs=inputs)
        self.check_secrets(sorted(work.secrets))
        self.engine.check_store()
        offer = await asyncio.to_thread(self.engine.foresee, self._request(work, self.signers().format_for_plan()))
        self._question.note(offer.state)
        before = len(offer.state.pilots)
        new = list_missing_images(self._wanted(work), offer.state.pilots)
        after = before + len(new)
        changes = [
            MachineChange("create", f"pilot {number}", self._describe(image), offer.troubles.get(image, ""))
            for number, image in enumerate(new, before)
        ]
        made = bool(changes)
        if before and offer.stale:
            changes.insert(0, MachineChange("update", "pilots", f"other {' and '.join(offer.stale)}"))
        notes = [*(offer.notes if made else ()), *map(_describe_wait, filter(_waits, offer.state.pilots))]
        notes += describe_memory_limits(work.asked, {"pilots": MEMORY_BY_LOOKS}) if made else []
        notes += warn_of_long_jobs(work, self.engine.time, self._leaving(work), self.name)
        notes += filter(None, [store_credentials.find_credentials(self.store_url).warning(datetime.now(UTC))])
        notes += warn_of_missing_library(lambda: check_packaging(self.type))
        return FleetForecast(before, after, tuple(changes), tuple(notes), inputs)

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        """See `Fleet.converge`: only missing pilots are asked for. Raises FleetError, StoreError."""
        store = self.opened()
        if store is None or not work.jobs:
            return
        check_packaging(self.type)
        self.engine.check_store()
        request = self._request(work, self.signers().format_for_machine())
        self._asked = frozenset(map(mark_image, request.wanted))
        await write_marker(store, self.project, self.name, self.engine.marker)
        await boot_failures.forget_boot_failures(store, Keys(self.project).boots, self.name)
        await self.engine.prepare(store, say, bars)
        await asyncio.to_thread(self.engine.submit, request, say)
        # The engine counted them just now, and has one of each image: it need not be asked at once. But one that
        # begins before the sweep is in the store finds no work, and leaves: `apply --detach` is to see that.
        there = tuple(Pilot("", "asked for", image=image) for image in self._asked)
        self._question.note(EngineState(there, remains=True), BETWEEN_SECONDS - _TRUSTED_SECONDS)

    def describe_shortage(self, asked: JobResources) -> str:
        """See `Fleet.describe_shortage`."""
        return describe_type_shortage([self.engine.shape], asked)

    def check_secrets(self, names: Sequence[str]) -> None:
        """See `Fleet.check_secrets`: pilots get the values that this machine knows."""
        SecretValues().get(names)

    async def check_offer(self) -> str:
        """See `Checkable.check_offer`."""
        check_packaging(self.type)
        self.engine.check_store()
        offer = await asyncio.to_thread(self.engine.foresee)
        for trouble in offer.troubles.values():
            raise FleetError(f"{self.name}: {trouble}")
        return "; ".join([f"{self.name}: {self.engine.describe_pilot()}", *offer.notes])

    async def has_workers(self) -> bool:
        """See `Fleet.has_workers`: a pilot that waits is on its way. Asks the engine seldom.

        Each image that was asked for needs one, since a pilot of another image leaves its jobs alone. Where the engine
        does not answer, heartbeats tell which agents live.
        """
        if (store := self.opened()) is None:
            return True
        try:
            state = await self._question.ask()
        except FleetError:
            return True
        lacking = self._asked - {pilot.image for pilot in state.pilots}
        if state.pilots and not lacking:
            return True
        if failures := [each for each in state.failures if each.image in lacking or not self._asked]:
            raise FleetError(
                f"the pilots of provider {self.name!r} could not begin: {failures[-1].name}: {failures[-1].why}",
                hint=f"mend it, and apply again; {self.recent_log().strip()}",
            )
        if state.pilots:
            return False
        await boot_failures.check_boot_failures(store, Keys(self.project).boots, self.name)
        return False

    async def check_images(self, digests: Collection[str]) -> bool:
        """See `ImageCheckable.check_images`: an engine that does not answer hides why pilots wait."""
        lacking = self._asked - {mark_image(f"@{digest}") for digest in digests}
        if not lacking:
            return bool(digests)
        try:
            state = await self._question.ask()
        except FleetError:
            return False
        for image in sorted(lacking):
            pilots = [pilot for pilot in state.pilots if pilot.image == image]
            if pilots and all(pilot.stuck for pilot in pilots):
                what = f"{pilots[-1].id} waits: {pilots[-1].stuck}"
                raise FleetError(f"no pilot of provider {self.name!r} can begin: {what}", hint=pilots[-1].hint)
        return False

    def recent_log(self) -> str:
        """See `Fleet.recent_log`."""
        return f"  (logs of pilots: {self.engine.logs})"

    async def instances(self) -> tuple[Instance, ...]:
        """See `Fleet.instances`: the pilots as the engine has them, where a marker says that there may be any."""
        if not await self._marked():
            return ()
        try:
            state = await self._question.ask()
        except FleetError as exc:
            return (Instance(_REST, (), f"{self.engine.where}: {exc.message}", runs=False),)
        found = [Instance(each.id, (each.agent,) if each.agent else (), each.about) for each in state.pilots]
        failures = await self._failures(state)
        found += [
            Instance(name, (), f"could not begin: {why}", runs=False, failed=True) for name, why in failures.items()
        ]
        if not state.pilots:
            about = f"no pilot; code and credentials on {self.engine.where}" if state.remains else "no pilot"
            found.append(Instance(_REST, (), about, runs=False))
        return tuple(found)

    async def _failures(self, state: EngineState) -> dict[str, str]:
        """Return why pilots could not begin, by their names: what the engine's side noted, and what the store has."""
        if (store := self.opened()) is None:
            return {}
        boots = await boot_failures.read_boot_failures(store, Keys(self.project).boots)
        found = {boot.machine: boot.why for boot in boots if boot.fleet == self.name}
        return found | {failure.name: failure.why for failure in state.failures}

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """See `Auditable.audit`."""
        if self.opened() is None:
            return ()
        try:
            state = await asyncio.to_thread(self.engine.list_pilots)
        except FleetError as exc:
            return (AuditFinding(self.engine.where, f"cannot be asked: {exc.message}", exc.hint or "try again"),)
        found = list(_find_faults(state, self.recent_log().strip(), busy=busy))
        if (state.pilots or state.remains) and not await self._marked():
            what = f"{len(state.pilots)} pilots of this fleet" if state.pilots else "files of this fleet"
            hint = "`monkey apply` makes them its own; `monkey destroy` takes them away, once it did"
            found.append(AuditFinding(self.engine.where, f"{what} that no apply has written down", hint))
        return (*found, *self.engine.audit(state))

    async def destroy(self, say: Say) -> None:
        """See `Fleet.destroy`. Raises FleetError where the engine keeps something, StoreError."""
        if (store := self.opened()) is None:
            return
        await asyncio.to_thread(self.engine.remove, say)
        self._question.forget()
        await boot_failures.forget_boot_failures(store, Keys(self.project).boots, self.name)
        await forget_marker(store, self.project, self.name)

    async def _marked(self) -> bool:
        store = self.opened()
        return store is not None and await read_marker(store, self.project, self.name) is not None

    def _describe(self, image: str) -> str:
        return f"{self.engine.describe_pilot(image)}, at most {self.engine.most}{' of this image' if image else ''}"

    def _wanted(self, work: FleetWork) -> Mapping[str, int]:
        of = self.engine
        return count_wanted_pilots(work, of.shape, of.most, self.provider, by_image=of.runs_one_image)

    def _leaving(self, work: FleetWork) -> float:
        return count_leaving_seconds(self.engine.time or float("inf"), work.grace)

    def _request(self, work: FleetWork, signers: str) -> PilotRequest:
        """Return what pilots get. Raises FleetError where this machine lacks a secret of a sweep that is at hand."""
        values, kept = SecretValues().collect(work.secrets, work.others)
        lines = {name: quote_secret_line(name, value) for name, value in values.items()}
        return PilotRequest(self._wanted(work), work.grace, signers, lines, kept)


def _waits(pilot: Pilot) -> bool:
    return not pilot.agent


def _describe_wait(pilot: Pilot) -> str:
    if pilot.stuck:
        return f"warning: pilot {pilot.id} waits: {pilot.stuck}. {pilot.hint}"
    return f"pilot {pilot.id} {pilot.about}"


def _find_faults(state: EngineState, logs: str, *, busy: bool) -> Iterator[AuditFinding]:
    for pilot in state.pilots:
        if pilot.stuck:
            yield AuditFinding(f"pilot {pilot.id}", f"waits for ever: {pilot.stuck}", pilot.hint)
    for failure in state.failures:
        hint = f"mend it, and apply again {logs}"
        yield AuditFinding(f"pilot {failure.name}", f"could not begin: {failure.why}", hint)
    if busy and not state.pilots and not state.failures:
        yield AuditFinding("pilots", "none is there or queued, though there is work", "`monkey apply` asks for them")
