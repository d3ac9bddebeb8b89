"""What is done to a fleet in a cluster: its Secret and its Jobs, read, made and taken away by kubectl."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey.signing.machine_list import is_same_list
from monkey_stacks.kubernetes import pilot_jobs
from monkey_stacks.kubernetes.handed_files import HandedFiles
from monkey_stacks.kubernetes.kubectl import Kubectl
from monkey_stacks.kubernetes.manifests.pilot_manifests import FLEET_LABEL, write_secret
from monkey_stacks.kubernetes.pilot_jobs import PilotJob
from monkey_stacks.pilots.pilot_engine import PilotRequest

#: Seconds within which deleted pods must be gone, beyond those that a cluster takes to notice; and between looks.
_GONE_SECONDS, _LOOK_SECONDS = 600.0, 1.0
#: Who owns the fields of the Secret.
_MANAGER = "monkey"
#: Files of the Secret that are secret; and what a plan calls them.
_SECRET = {"credentials.json": "credentials", "secrets": "secrets"}
#: What it calls credentials that agents do not read again: those of Google and Azure.
_LATER = "credentials for pods that start later"


@dataclass(frozen=True)
class ClusterChanges:
    """The objects of one fleet, by its label."""

    kubectl: Kubectl
    label: str

    def list_jobs(self) -> tuple[PilotJob, ...]:
        """Return the fleet's Jobs. Raises FleetError."""
        return pilot_jobs.read_jobs(self._list(), time.time())

    def has_secret(self) -> bool:
        """Return whether the Secret is there. Raises FleetError."""
        words = ("get", "secret", self.label, "--ignore-not-found", "--output=name")
        return bool(self.kubectl.run_verb(*words, missing=True).text.strip())

    def has_claim(self) -> bool:
        """Return whether the volume claim is there. Raises FleetError."""
        words = ("get", "persistentvolumeclaim", self.label, "--ignore-not-found", "--output=name")
        return bool(self.kubectl.run_verb(*words, missing=True).text.strip())

    def hand_over(self, files: HandedFiles, request: PilotRequest, store_url: str) -> None:
        """Write the Secret; pods that start later get it. Raises FleetError."""
        there = self._read_secret().get("secrets", b"").decode() if request.kept else ""
        secret = write_secret(self.label, files.write(request, store_url, there))
        words = ("apply", "--server-side", "--force-conflicts", f"--field-manager={_MANAGER}", "--filename=-")
        self.kubectl.run_verb(*words, "--output=name", given=secret)

    def list_stale(self, files: HandedFiles, request: PilotRequest, store_url: str) -> tuple[str, ...]:
        """Return what pods have of the Secret, and should not have any more: "signers". Raises FleetError."""
        there = self._read_secret()
        due = files.write(request, store_url, there.get("secrets", b"").decode(errors="replace"))
        if not there:
            return ()
        signers = hashlib.sha256(there.get("signers", b"")).hexdigest()
        other = () if is_same_list(signers, request.signers) else ("signers",)
        called = _SECRET | ({} if files.store.startswith("s3://") else {"credentials.json": _LATER})
        return (*other, *(each for name, each in called.items() if there.get(name) != due[name]))

    def _read_secret(self) -> Mapping[str, bytes]:
        """Return the files of the Secret; none where there is no Secret of ours. Raises FleetError."""
        words = ("get", "secret", self.label, "--ignore-not-found", "--output=json")
        text = self.kubectl.run_verb(*words, missing=True).text
        try:
            return {name: base64.b64decode(data) for name, data in json.loads(text)["data"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}

    def create_objects(self, objects: Sequence[Mapping[str, Any]]) -> int:
        """Create Jobs or a claim; return how many. Those whose name is taken are another's who applies. FleetError."""
        given = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        answer = self.kubectl.try_verb("create", "--filename=-", "--output=name", given=given)
        for refusal in answer.refusals:
            if refusal.reason != "AlreadyExists":
                raise self.kubectl.make_error(refusal.line)
        return len(answer.text.split())

    def clear_jobs(self, jobs: Iterable[PilotJob]) -> None:
        """Delete these Jobs, but none that has taken the name of one. Raises FleetError."""
        for each in jobs:
            path = f"/apis/batch/v1/namespaces/{self.kubectl.namespace}/jobs/{each.name}"
            self.kubectl.delete_version(path, each.uid)

    def remove_all(self) -> int:
        """Delete all of the fleet, wait until it is gone, and return how many pilots lived. Raises FleetError."""
        before = [each for each in self.list_jobs() if each.lives]
        select = f"--selector={self._select}"
        self.kubectl.run_verb("delete", "jobs", select, "--wait=false", "--ignore-not-found", "--output=name")
        until = time.monotonic() + _GONE_SECONDS
        while there := self._list():
            self._drop_overdue(there)
            if time.monotonic() > until:
                names = ", ".join(str(each["metadata"]["name"]) for each in there)
                hint = f"look at them: kubectl --context={self.kubectl.context} describe pods {select}"
                raise FleetError(f"{self.kubectl.place}: {names} are still there after {_GONE_SECONDS:g} s", hint=hint)
            time.sleep(_LOOK_SECONDS)
        self.kubectl.run_verb("delete", "secret", self.label, "--ignore-not-found", "--output=name", missing=True)
        return len(before)

    def _drop_overdue(self, there: Sequence[Mapping[str, Any]]) -> None:
        """Have the cluster forget pods on nodes that do not answer: such a node ends them when it comes back."""
        pods = [each for each in there if each.get("kind") == "Pod" and pilot_jobs.is_overdue(each, time.time())]
        for pod in pods:
            words = ("delete", "pod", str(pod["metadata"]["name"]), "--force", "--grace-period=0", "--wait=false")
            self.kubectl.run_verb(*words, "--ignore-not-found", "--output=name", missing=True)

    def _list(self) -> Sequence[Mapping[str, Any]]:
        return self.kubectl.list_objects("jobs,pods", self._select)

    @property
    def _select(self) -> str:
        return f"{FLEET_LABEL}={self.label}"
