"""Kubernetes as an engine of pilots; see `monkey_stacks.pilots.pilot_engine.PilotEngine`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding
from monkey.plan.sizes import format_size
from monkey.spec.project.engines.kubernetes_settings import MAX_TIME_SECONDS, KubernetesSettings
from monkey.spec.project.provider import Provider
from monkey.spec.yaml.units import format_duration
from monkey.store.content.upload_progress import Begin
from monkey.store.store_port import LinkSigner, Store
from monkey_stacks.bundle.bundle import publish_bundle
from monkey_stacks.bundle.publishing import build_for_store
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.kubernetes.cluster_changes import ClusterChanges
from monkey_stacks.kubernetes.handed_files import HandedFiles
from monkey_stacks.kubernetes.kubectl import Kubectl, KubectlAnswer
from monkey_stacks.kubernetes.kubectl_errors import find_hint, shorten_refusal
from monkey_stacks.kubernetes.manifests import pilot_manifests
from monkey_stacks.kubernetes.manifests.pilot_manifests import PilotShape
from monkey_stacks.kubernetes.manifests.storage_claim import write_storage_claim
from monkey_stacks.kubernetes.namespace_making import NamespaceMaking
from monkey_stacks.kubernetes.pilot_jobs import PilotJob
from monkey_stacks.kubernetes.pod_store import place_pod_store
from monkey_stacks.pilots.pilot_counts import list_missing_images
from monkey_stacks.pilots.pilot_engine import (
    EngineState,
    Pilot,
    PilotFailure,
    PilotOffer,
    PilotRequest,
    mark_image,
)

#: Bytes of a pilot's memory that has no limit of ours.
_UNKNOWN_MEMORY = 1 << 60
#: Seconds of grace of the pod that is only asked about.
_SOME_GRACE = 10.0


@dataclass
class KubernetesEngine:
    """The pilots of one provider."""

    name: str
    provider: Provider
    project: str
    store_url: str
    type: str = "kubernetes"
    #: The label that a marker names; "" for the one that follows from the store.
    marked: str = ""
    #: The agent's code: where pods fetch it, which is secret; and its hash. Known once it is in the store.
    _links: Sequence[str] = field(default=(), repr=False)
    _sha256: str = ""

    @property
    def _of(self) -> KubernetesSettings:
        return self.provider.clustered

    @property
    def kubectl(self) -> Kubectl:
        """kubectl, for the context and the namespace."""
        return Kubectl(self.name, self._of.context, self._of.namespace or spell_name(self.project, 63))

    @property
    def _changes(self) -> ClusterChanges:
        return ClusterChanges(self.kubectl, self.label)

    @property
    def _namespace(self) -> NamespaceMaking:
        return NamespaceMaking(self.kubectl, spell_name(self.project, 63))

    @property
    def _files(self) -> HandedFiles:
        place = place_pod_store(self.name, self._of, self.store_url)
        return HandedFiles(self.name, self.provider, self.project, place, self._links)

    @property
    def where(self) -> str:
        """See `PilotEngine.where`."""
        return self.kubectl.place

    @property
    def logs(self) -> str:
        """See `PilotEngine.logs`."""
        of = self.kubectl
        select = f"{pilot_manifests.FLEET_LABEL}={self.label}"
        return f"kubectl --context={of.context} --namespace={of.namespace} logs --prefix -l {select}"

    @property
    def label(self) -> str:
        """The label of the fleet's objects, which tells it from all others."""
        if self.marked:
            return self.marked
        known = hashlib.sha256(f"{self.store_url}\n{self.project}\n{self.name}".encode()).hexdigest()[:8]
        return f"monkey-{spell_name(self.project, 16)}-{spell_name(self.name, 16)}-{known}"

    @property
    def marker(self) -> Mapping[str, str]:
        """See `PilotEngine.marker`."""
        of = self.kubectl
        return {"type": self.type, "context": of.context, "namespace": of.namespace, "label": self.label}

    @property
    def bound(self) -> Mapping[str, Any]:
        """See `PilotEngine.bound`."""
        bound: dict[str, Any] = json.loads(json.dumps(asdict(self._of), default=str))
        return bound

    @property
    def most(self) -> int:
        """See `PilotEngine.most`."""
        return self._of.pilots

    @property
    def time(self) -> float:
        """See `PilotEngine.time`."""
        return self._of.time

    @property
    def shape(self) -> MachineType:
        """See `PilotEngine.shape`."""
        of = self._of
        return MachineType("a pilot", of.cpus, of.memory or _UNKNOWN_MEMORY, of.gpus, share=1.0)

    @property
    def runs_one_image(self) -> bool:
        """See `PilotEngine.runs_one_image`: no runtime works in a pod."""
        return True

    def describe_pilot(self, image: str = "") -> str:
        """See `PilotEngine.describe_pilot`."""
        of = self._of
        parts = [f"a pod of {shorten_image(image) or of.image} in {self.where}", f"{of.cpus} CPU{'s' * (of.cpus != 1)}"]
        parts += [format_size(of.memory)] if of.memory else []
        parts += [f"{of.gpus} {of.gpu_resource}"] if of.gpus else []
        parts += ["spot nodes alone"] if of.spot else []
        return ", ".join([*parts, f"{format_duration(of.time)}, comes again while there is work"])

    def check_store(self) -> None:
        """See `PilotEngine.check_store`."""
        place_pod_store(self.name, self._of, self.store_url)

    def list_pilots(self) -> EngineState:
        """See `PilotEngine.list_pilots`."""
        jobs = self._changes.list_jobs()
        pilots = [each.pilot for each in jobs if each.lives]
        if any(each.podless for each in jobs) and (refused := self._ask_pod().refusals):
            # Quota and policies let Jobs in, and keep their pods out.
            pilots = [_explain(each, shorten_refusal(refused[0].line)) for each in jobs if each.lives]
        failures = tuple(PilotFailure(each.name, each.failure, each.pilot.image) for each in jobs if each.failure)
        remains = bool(jobs) or self._changes.has_secret()
        return EngineState(tuple(pilots), failures, remains)

    def foresee(self, request: PilotRequest | None = None) -> PilotOffer:
        """See `PilotEngine.foresee`."""
        if self._of.create_namespace and self._namespace.is_missing():
            return self._foresee_namespace()
        jobs = self._changes.list_jobs()
        stale = self._changes.list_stale(self._files, request, self.store_url) if request and jobs else ()
        shapes = [self._shape(_SOME_GRACE, image) for image in (request.wanted if request else [""])]
        asked = [*map(pilot_manifests.write_job, shapes), pilot_manifests.write_secret(f"{self.label}-try", {})]
        claims = [self._claim] if self._of.storage and not self._changes.has_claim() else []
        answer = self._try_create([*asked, *claims])
        # What policies say of images, they say of pods.
        pods = {shape.image: answer if answer.refusals else self._ask_pod(shape.image) for shape in shapes}
        refused = {image: pod.refusals[0].line for image, pod in pods.items() if pod.refusals}
        warnings = dict.fromkeys(each for said in (answer, *pods.values()) for each in said.warnings)
        notes = [f"{self.name}: warning: {each}" for each in warnings]
        notes += [self._describe_claim()] if claims else []
        notes += [f"{self.name}: {each.name} {each.pilot.about}" for each in jobs if each.lost]
        state = EngineState(tuple(each.pilot for each in jobs if each.lives), (), bool(jobs))
        troubles = {image: self._describe_refusal(line) for image, line in refused.items()}
        return PilotOffer(state, tuple(notes), troubles, stale)

    def _foresee_namespace(self) -> PilotOffer:
        """Return the offer of a namespace that is missing, and that this user may make."""
        notes = [f"{self.name}: + namespace {self.kubectl.namespace}; what it takes is known once it is there"]
        notes += [self._describe_claim()] if self._of.storage else []
        return PilotOffer(EngineState(), tuple(notes))

    def _describe_claim(self) -> str:
        return f"{self.name}: + volume claim {self.label}, {format_size(self._of.storage)}"

    async def prepare(self, store: Store, say: Say, bars: Begin) -> None:
        """See `PilotEngine.prepare`."""
        place = place_pod_store(self.name, self._of, self.store_url)
        bundle = await asyncio.to_thread(build_for_store, place, self._of.architecture)
        await publish_bundle(store, bundle, say, bars)
        self._sha256 = bundle.sha256
        if isinstance(store, LinkSigner) and not place.startswith("/"):
            self._links = [await store.sign_link(key, MAX_TIME_SECONDS) for key in bundle.keys]
        else:
            self._links = [f"{place.rstrip('/')}/{key}" for key in bundle.keys]

    def submit(self, request: PilotRequest, say: Say) -> int:
        """See `PilotEngine.submit`: who applies at the same time makes Jobs of the same names, so no more of them."""
        if self._of.create_namespace and self._namespace.make():
            say(f"namespace {self.kubectl.namespace} made")
        self._changes.hand_over(self._files, request, self.store_url)
        absent = self._of.storage and not self._changes.has_claim()
        if absent and self._changes.create_objects([self._claim]):
            say(f"volume claim {self.label} made")
        jobs = self._changes.list_jobs()
        living = [each for each in jobs if each.lives]
        missing = list_missing_images(request.wanted, [each.pilot for each in living])
        self._changes.clear_jobs([each for each in jobs if not each.lives])
        if not missing:
            return 0
        taken, due = {each.name for each in living}, list[Mapping[str, Any]]()
        for image, count in Counter(missing).items():
            names = [self._spell_job(image, number) for number in range(self.most)]
            free = [name for name in names if name not in taken][:count]
            due += [pilot_manifests.write_job(self._shape(request.grace, image), name) for name in free]
        new = self._changes.create_objects(due)
        if new:
            what = "1 pilot" if new == 1 else f"{new} pilots"
            say(f"{what} created as Job{'s' * (new != 1)} in {self.where}")
        return new

    def audit(self, state: EngineState) -> Sequence[AuditFinding]:
        """See `PilotEngine.audit`."""
        hint = "`monkey apply` makes another; Kubernetes waits until the node is back, or removed"
        lost = [each for each in self._changes.list_jobs() if each.lost]
        return [AuditFinding(f"pilot {each.name}", f"is {each.pilot.about}", hint) for each in lost]

    def remove(self, say: Say) -> None:
        """See `PilotEngine.remove`."""
        deleted = self._changes.remove_all()
        what = "1 pilot" if deleted == 1 else f"{deleted} pilots"
        say(f"{what} deleted; code and credentials removed" if deleted else "credentials removed")

        of = self.kubectl
        with contextlib.suppress(FleetError):  # who may not see claims has made none
            if self._changes.has_claim():
                delete = f"kubectl --context={of.context} --namespace={of.namespace} delete pvc {self.label}"
                say(f"the volume claim stays, with its data; delete it by: {delete}")
        with contextlib.suppress(FleetError):
            if self._namespace.is_ours():
                delete = f"kubectl --context={of.context} delete namespace {of.namespace}"
                say(f"namespace {of.namespace} stays; delete it, with all that anybody has in it, by: {delete}")

    @property
    def _claim(self) -> Mapping[str, Any]:
        return write_storage_claim(self.label, pilot_manifests.make_labels(self.label), self._of)

    def _spell_job(self, image: str, number: int) -> str:
        return "-".join(filter(None, [self.label, mark_image(image), str(number)]))

    def _shape(self, grace: float, image: str = "") -> PilotShape:
        return PilotShape(self._of, self.label, self._sha256, grace, image)

    def _ask_pod(self, image: str = "") -> KubectlAnswer:
        """Ask whether the namespace takes a pod of a pilot, for jobs with this image; changes nothing."""
        answer = self._try_create([pilot_manifests.write_pod(self._shape(_SOME_GRACE, image))])
        refused = tuple(each for each in answer.refusals if not _is_right_to_pods(each.line))
        return KubectlAnswer(answer.text, answer.warnings, refused)

    def _try_create(self, objects: Sequence[Mapping[str, Any]]) -> KubectlAnswer:
        given = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        words = ("create", "--dry-run=server", "--filename=-", "--output=name")
        return self.kubectl.try_verb(*words, given=given)

    def _describe_refusal(self, line: str) -> str:
        hint = find_hint(line, self.kubectl.context, self.kubectl.namespace)
        return "; ".join(filter(None, [f"Kubernetes refuses it ({shorten_refusal(line)})", hint]))


def shorten_image(image: str) -> str:
    """Return an image, NAME@sha256:…, for people."""
    name, _, digest = image.partition("@sha256:")
    return f"{name}@sha256:{digest[:12]}…" if digest else name


def spell_name(text: str, most: int) -> str:
    """Return a text as a part of a name of Kubernetes: small letters, digits and '-', `most` characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:most].strip("-") or "x"


def _is_right_to_pods(line: str) -> bool:
    """Return whether only the question was refused: a user may make Jobs, and no pods."""
    return "pods is forbidden: User" in line


def _explain(job: PilotJob, why: str) -> Pilot:
    return replace(job.pilot, about=f"waits: {why}") if job.podless else job.pilot
