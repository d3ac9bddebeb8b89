"""Slurm as an engine of pilots; see `monkey_stacks.pilots.pilot_engine.PilotEngine`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.agent_state import TAKEN_BACK, UNFIT
from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding
from monkey.plan.sizes import format_size
from monkey.signing.machine_list import is_same_list
from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey.spec.project.provider import Provider
from monkey.spec.yaml.units import format_duration
from monkey.store.content.upload_progress import Begin
from monkey.store.store_port import Store
from monkey_stacks import store_credentials
from monkey_stacks.bundle.bundle import Bundle, build_bundle
from monkey_stacks.bundle.wheels import WheelTarget
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.pilots.agent_arguments import list_agent_arguments
from monkey_stacks.pilots.pilot_engine import EngineState, Pilot, PilotFailure, PilotOffer, PilotRequest
from monkey_stacks.slurm import partition_limits, slurm_errors, slurm_store, submission
from monkey_stacks.slurm.login_node import LoginNode

#: Bytes that must be free below the working directory.
_MIN_FREE_BYTES = 64 << 20
#: Bytes of a pilot's memory where the partition decides.
_UNKNOWN_MEMORY = 1 << 60
#: States of a job that has a node.
_AT_WORK = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING")


@dataclass(frozen=True)
class SlurmEngine:
    """The pilots of one provider."""

    name: str
    provider: Provider
    project: str
    store_url: str
    type: str = "slurm"
    #: The label that a marker names; "" for the one that follows from the store.
    marked: str = ""

    @property
    def _slurm(self) -> SlurmSettings:
        return self.provider.queued

    @property
    def _login(self) -> LoginNode:
        return LoginNode(self.name, self._slurm.login)

    @property
    def where(self) -> str:
        """See `PilotEngine.where`."""
        return f"{self._login.called}:{self._slurm.workdir}/pilots/{self.label}"

    @property
    def logs(self) -> str:
        """See `PilotEngine.logs`."""
        return self.where

    @property
    def label(self) -> str:
        """The name of the pilots' jobs, which tells this fleet from all others."""
        if self.marked:
            return self.marked
        told = hashlib.sha256(f"{self.store_url}\n{self.project}\n{self.name}".encode()).hexdigest()[:8]
        return f"monkey-{self.project[:40]}-{self.name[:40]}-{told}"

    @property
    def marker(self) -> Mapping[str, str]:
        """See `PilotEngine.marker`."""
        return {"type": self.type, "login": self._slurm.login, "workdir": self._slurm.workdir, "label": self.label}

    @property
    def bound(self) -> Mapping[str, Any]:
        """See `PilotEngine.bound`."""
        slurm = self._slurm
        asked = {"options": submission.list_options(slurm), "setup": list(slurm.setup), "scratch": slurm.scratch}
        return {"login": slurm.login, "workdir": slurm.workdir, "pilots": slurm.pilots, **asked}

    @property
    def most(self) -> int:
        """See `PilotEngine.most`."""
        return self._slurm.pilots

    @property
    def time(self) -> float:
        """See `PilotEngine.time`."""
        return self._slurm.time

    @property
    def shape(self) -> MachineType:
        """See `PilotEngine.shape`."""
        slurm = self._slurm
        return MachineType("a pilot", slurm.cpus, slurm.memory or _UNKNOWN_MEMORY, slurm.gpus, share=1.0)

    @property
    def runs_one_image(self) -> bool:
        """See `PilotEngine.runs_one_image`: a runtime on the node runs images."""
        return False

    def describe_pilot(self, image: str = "") -> str:
        """See `PilotEngine.describe_pilot`."""
        slurm = self._slurm
        partition = dict(slurm.options).get("partition")
        parts = [f"partition {partition}" if partition else "the default partition"]
        parts.append(f"{slurm.cpus} CPU{'s' * (slurm.cpus != 1)}")
        parts += [format_size(slurm.memory)] if slurm.memory else []
        parts += [f"{slurm.gpus} {slurm.gpu_type or 'GPU'}{'s' * (slurm.gpus != 1)}"] if slurm.gpus else []
        return ", ".join([*parts, f"{format_duration(slurm.time)}, comes again while there is work"])

    def check_store(self) -> None:
        """See `PilotEngine.check_store`."""
        slurm_store.place_store(self.name, self._slurm, self.store_url)

    def list_pilots(self) -> EngineState:
        """See `PilotEngine.list_pilots`."""
        return self.read_state(self._login.ask("list", self._place))

    def foresee(self, request: PilotRequest | None = None) -> PilotOffer:
        """See `PilotEngine.foresee`."""
        seen = self._observe(self._list_handed(request) if request else {})
        self._check_login(seen)
        partition = self._find_partition(seen)
        taken, said = seen["test"]
        said = slurm_errors.describe_test(said)
        troubles = list(partition_limits.list_limit_troubles(self._slurm, partition))
        if not taken:
            hint = slurm_errors.find_hint(said)
            troubles.insert(0, f"sbatch refuses it ({said})" + (f"; {hint}" if hint else ""))
        known = partition_limits.describe_partition(partition)
        notes = [f"{self.name}: {note}" for note in (known, said if taken and not troubles else "") if note]
        state = self.read_state({**seen, "there": bool(seen["bundles"])})
        stale = seen["stale"]
        if request and seen["signers"] and not is_same_list(seen["signers"], request.signers):
            stale = ["signers", *stale]
        return PilotOffer(state, tuple(notes), {"": "; ".join(troubles)} if troubles else {}, tuple(stale))

    async def prepare(self, store: Store, say: Say, bars: Begin) -> None:
        """See `PilotEngine.prepare`: nodes get the bundle by the shared file system."""

    def submit(self, request: PilotRequest, say: Say) -> int:
        """See `PilotEngine.submit`."""
        seen = self._observe(None)
        self._check_login(seen)
        if troubles := list(partition_limits.list_limit_troubles(self._slurm, self._find_partition(seen))):
            raise FleetError(
                f"{self.name}: {troubles[0]}", hint="lower it in monkey.yaml: the pilot would wait for ever"
            )
        bundle = self._build_bundle(seen)
        order = ("submit", self._order(request, seen, bundle), None)
        done = self._login.ask_all([order])
        if "bundle" in done:
            sent = ("install", {**self._place, "sha256": bundle.sha256}, bundle.path)
            done = self._login.ask_all([sent, order])
        if "bundle" in done:
            raise FleetError(f"{self.where}: the bundle is taken away as soon as it is there", hint="apply again")
        if done["new"]:
            what = "1 pilot" if done["new"] == 1 else f"{done['new']} pilots"
            say(f"{what} queued as job {done['job']} on {self._login.called}")
        return int(done["new"])

    def audit(self, state: EngineState) -> Sequence[AuditFinding]:
        """See `PilotEngine.audit`."""
        return ()

    def remove(self, say: Say) -> None:
        """See `PilotEngine.remove`."""
        cancelled = self._login.ask("remove", self._place)
        what = "1 pilot" if cancelled == 1 else f"{cancelled} pilots"
        say(f"{what} cancelled; code, credentials and logs removed" if cancelled else "code and credentials removed")

    @property
    def _place(self) -> dict[str, Any]:
        return {"workdir": self._slurm.workdir, "name": self.label}

    def _list_handed(self, request: PilotRequest) -> dict[str, Any]:
        """Return what is handed over that may change while pilots work."""
        return {
            "credentials": dict(store_credentials.find_credentials(self.store_url).variables),
            "signers": request.signers,
            "secrets": dict(request.secrets),
            "kept": list(request.kept),
        }

    def _observe(self, handed: Mapping[str, Any] | None) -> dict[str, Any]:
        """Ask what is there; `handed`: see `_list_handed`, and None where no pilot is foreseen."""
        name = dict(self._slurm.options).get("partition", "")
        only = [name] if re.fullmatch(r"[\w.-]+", name) else []
        seen = self._login.ask(
            "observe",
            {**self._place, "partition": only, "options": submission.list_options(self._slurm), "handed": handed},
        )
        assert isinstance(seen, dict)
        return seen

    def _find_partition(self, seen: Mapping[str, Any]) -> dict[str, str]:
        found, said = seen["partition"]
        return partition_limits.find_partition(said, dict(self._slurm.options).get("partition", "")) if found else {}

    def _check_login(self, seen: Mapping[str, Any]) -> None:
        """Raise FleetError where pilots could not work from what the login node has."""
        called = self._login.called
        if not seen["writable"]:
            raise FleetError(
                f"{called}: no right to write to {seen['workdir']}", hint="name another place with `workdir:`"
            )
        if seen["free"] < _MIN_FREE_BYTES:
            raise FleetError(
                f"{called}: expected {_MIN_FREE_BYTES >> 20} MiB free at {seen['workdir']}, found {seen['free'] >> 20}",
                hint="free some space there, or name another place with `workdir:`",
            )
        if not str(seen["platform"]).startswith("linux"):
            raise FleetError(f"{called}: expected Linux, found {seen['platform']}", hint="pilots need Linux")

    def _build_bundle(self, seen: Mapping[str, Any]) -> Bundle:
        scheme = self.store_url.partition("://")[0] if "://" in self.store_url else ""
        python = (int(seen["python"][0]), int(seen["python"][1]))
        return build_bundle("" if scheme == "ssh" else scheme, WheelTarget(python, seen["platform"], seen["libc"]))

    def _order(self, request: PilotRequest, seen: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
        slurm = self._slurm
        store = slurm_store.expand_home(slurm_store.place_store(self.name, slurm, self.store_url), seen["home"])
        codes = TAKEN_BACK, UNFIT
        return {
            **self._place,
            "wanted": request.total,
            "sha256": bundle.sha256,
            "options": submission.list_batch_options(slurm, request.grace),
            "script": submission.write_script(slurm, request.grace, seen["executable"], seen["python"], codes),
            "arguments": list_agent_arguments(self.provider, store, self.project, self.name),
            "project": self.project,
            "fleet": self.name,
            "store": store,
            **self._list_handed(request),
        }

    def read_state(self, seen: Mapping[str, Any]) -> EngineState:
        """Return what the login node saw: rows of the queue, failures, and whether files are there."""
        pilots = tuple(map(self._read_pilot, seen["pilots"]))
        failures = (text.partition(": ") for text in seen["failures"])
        return EngineState(pilots, tuple(PilotFailure(name, why) for name, _, why in failures), bool(seen["there"]))

    def _read_pilot(self, row: Mapping[str, str]) -> Pilot:
        if row["state"] in _AT_WORK and row["node"]:
            left = f"{row['left']} left" if row["state"] == "RUNNING" else row["state"].lower()
            return Pilot(row["id"], f"on {row['node']}, {left}", f"{row['node']}-{row['job']}")
        hint = slurm_errors.find_lasting_reason(row["reason"])
        reason = "it comes again" if row["reason"] == "BeginTime" else row["reason"]
        return Pilot(row["id"], f"waits: {reason}", stuck=row["reason"] if hint else "", hint=hint)
