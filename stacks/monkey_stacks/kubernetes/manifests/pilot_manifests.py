"""What Kubernetes gets for pilots: a Job for each, and one Secret, the only one that holds anything secret. Pure."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from monkey.fleet.agent_state import TAKEN_BACK, UNFIT
from monkey.fleet.machine_capacity import CPUS_VARIABLE, MEMORY_VARIABLE
from monkey.spec.project.engines.kubernetes_settings import MAX_TIME_SECONDS, KubernetesSettings
from monkey_stacks.boot.source_bundling import join_modules
from monkey_stacks.kubernetes.manifests.pod_merge import merge_pod
from monkey_stacks.kubernetes.manifests.spot_nodes import list_spot_tolerations, write_spot_affinity
from monkey_stacks.kubernetes.manifests.storage_claim import STORAGE_PLACE, STORAGE_VARIABLE
from monkey_stacks.pilots.leaving_time import count_leaving_seconds
from monkey_stacks.pilots.pilot_engine import mark_image

#: The label that tells a fleet's objects from all others.
FLEET_LABEL = "monkey-sweep/fleet"
#: The label that has the mark of the image whose jobs a pilot runs; not there for jobs without an image.
IMAGE_LABEL = "monkey-sweep/image"
#: The containers of a pod.
AGENT, FETCH = "agent", "fetch"
#: Where a pod keeps everything, and where it finds the Secret.
PLACE, HANDED = "/monkey", "/handed"
#: The user of pods, since many images have no other than root.
_USER = 1000
#: Failures of one pilot's pods, others than those that are no fault of theirs, before the Job has failed.
_MAX_FAILURES = 3
#: Seconds for which a Job stays that has ended: `monkey audit` says why.
_KEPT_SECONDS = 3600
#: Seconds beyond the jobs' grace before a pod that is asked to end is killed.
_GOODBYE_SECONDS = 60
#: Seconds for which a pod stays bound to a node that does not answer.
_NODE_AWAY_SECONDS = 60
#: Starts the agent, which leaves so many seconds from now.
_START = (
    "import os, sys, time; end = str(time.time() + float(sys.argv[1])); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:], '--leave-at', end])"
)
_LOCKED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True)
class PilotShape:
    """What all pilots of a fleet are made with."""

    settings: KubernetesSettings
    #: The fleet's label, which is the Secret's name, too.
    label: str
    #: Hash of the agent's code.
    sha256: str
    #: Seconds that jobs may take to end after SIGTERM.
    grace: float
    #: The image of its jobs, NAME@sha256:…, which is its pods', too; "" for jobs without one.
    image: str = ""

    @property
    def pod_image(self) -> str:
        """The image of its pods."""
        return self.image or self.settings.image


def write_job(shape: PilotShape, name: str = "") -> dict[str, Any]:
    """Return the Job of one pilot; without a name the API server makes one."""
    of = shape.settings
    labels = _label(shape) | ({"kueue.x-k8s.io/queue-name": of.queue} if of.queue else {})
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [UNFIT]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        # Its time was over, or it was asked to leave: it comes again.
        {"action": "Ignore", "onExitCodes": {"containerName": AGENT, "operator": "In", "values": [TAKEN_BACK]}},
    ]
    spec = {
        "backoffLimit": _MAX_FAILURES,
        "activeDeadlineSeconds": round(MAX_TIME_SECONDS),
        "ttlSecondsAfterFinished": _KEPT_SECONDS,
        "podFailurePolicy": {"rules": rules},
        "template": {"metadata": {"labels": _label(shape)}, "spec": write_pod_spec(shape)},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _name(shape, name, labels), "spec": spec}


def write_pod(shape: PilotShape) -> dict[str, Any]:
    """Return a pod as a Job would make it: to ask whether the namespace takes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _name(shape, "", _label(shape)),
        "spec": write_pod_spec(shape),
    }


def write_secret(label: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the Secret with what pilots need; never for a plan, a log or an argument."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": label, "labels": make_labels(label)},
        "type": "Opaque",
        "data": {name: base64.b64encode(data).decode() for name, data in files.items()},
    }


def make_labels(label: str) -> dict[str, str]:
    """Return the labels of all objects of a fleet."""
    return {FLEET_LABEL: label, "app.kubernetes.io/managed-by": "monkey"}


def write_pod_spec(shape: PilotShape) -> dict[str, Any]:
    """Return the spec of a pilot's pods, with what `pod:` says merged into it."""
    of = shape.settings
    away = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NODE_AWAY_SECONDS}
        for key in away
    ]
    named = {"serviceAccountName": of.service_account, "priorityClassName": of.priority_class}
    spec = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": round(of.time),
        "terminationGracePeriodSeconds": math.ceil(shape.grace) + _GOODBYE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **{key: value for key, value in named.items() if value},
        "nodeSelector": {"kubernetes.io/arch": of.architecture, **dict(of.node_selector)},
        **({"affinity": write_spot_affinity()} if of.spot else {}),
        "tolerations": [*tolerations, *(list_spot_tolerations() if of.spot else ()), *map(dict, of.tolerations)],
        "securityContext": {
            "runAsNonRoot": True,
            **dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), _USER),
            # A large volume's files are not all given to the group again at each start.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [_write_fetch(shape)],
        "containers": [_write_agent(shape)],
        "volumes": [
            {"name": "place", "emptyDir": {}},
            # Memory: credentials are on no disk of a node.
            {"name": "fleet", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            {"name": "handed", "secret": {"secretName": shape.label, "defaultMode": 0o440}},
            *(
                {"name": f"claim-{each.name}"[:63], "persistentVolumeClaim": {"claimName": each.claim}}
                for each in of.volumes
            ),
            *([{"name": "storage", "persistentVolumeClaim": {"claimName": shape.label}}] if of.storage else ()),
        ],
    }
    return _keep_image(shape, merge_pod(spec, of.pod))


def _keep_image(shape: PilotShape, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec with the image of the jobs, whatever `pod:` says: their identity has it.

    `pod:` may have made anything of the rest, which the API server judges.
    """
    if not shape.image:
        return spec
    lists = [kind for kind in ("initContainers", "containers") if isinstance(spec.get(kind), list)]
    return {**spec, **{kind: [_set_image(each, shape.image) for each in spec[kind]] for kind in lists}}


def _set_image(container: Any, image: str) -> Any:
    ours = isinstance(container, Mapping) and container.get("name") in (AGENT, FETCH)
    return {**container, "image": image} if ours else container


def _name(shape: PilotShape, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {**({"name": name} if name else {"generateName": f"{shape.label}-"}), "labels": dict(labels)}


def _label(shape: PilotShape) -> dict[str, str]:
    mark = mark_image(shape.image)
    return make_labels(shape.label) | ({IMAGE_LABEL: mark} if mark else {})


def _write_fetch(shape: PilotShape) -> dict[str, Any]:
    source = _join_source()
    return {
        "name": FETCH,
        "image": shape.pod_image,
        "command": ["python3", "-I", "-S", "-c", source, HANDED, PLACE, shape.sha256],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": _LOCKED,
        "resources": _write_resources(shape.settings, gpus=0),
        "volumeMounts": _mount(shape),
    }


@cache
def _join_source() -> str:
    joined = join_modules(["monkey_stacks.bundle.unpack", "monkey_stacks.kubernetes.remote.code_fetch"])
    return f"{joined}run_fetch(sys.argv[1:])\n"


def _write_agent(shape: PilotShape) -> dict[str, Any]:
    of = shape.settings
    works = max(1.0, of.time - count_leaving_seconds(of.time, shape.grace))
    code, fleet, scratch = f"{PLACE}/code", f"{PLACE}/fleet", f"{PLACE}/scratch"
    pilot = [code, "--pilot", fleet, "$(MONKEY_POD)", scratch, "--pilot-time", f"{of.time:g}"]
    pilot += ["--own-image", shape.image.rpartition("@")[2] or "none"]
    return {
        "name": AGENT,
        "image": shape.pod_image,
        "command": ["python3", "-I", "-S", "-c", _START, f"{works:g}", "-I", "-S", *pilot],
        "workingDir": PLACE,
        "env": _write_environment(of),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": _LOCKED,
        "resources": _write_resources(of, of.gpus),
        "volumeMounts": _mount(shape),
    }


def _write_environment(of: KubernetesSettings) -> list[dict[str, Any]]:
    known = {"HOME": f"{PLACE}/home", "USER": "monkey", "LOGNAME": "monkey", "LANG": "C.UTF-8"}
    known |= {STORAGE_VARIABLE: STORAGE_PLACE} if of.storage else {}
    asked = [(CPUS_VARIABLE, "requests.cpu")] + [(MEMORY_VARIABLE, "requests.memory")] * bool(of.memory)
    return [
        {"name": "MONKEY_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        *({"name": name, "value": value} for name, value in known.items()),
        *({"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource}}} for name, resource in asked),
    ]


def _write_resources(of: KubernetesSettings, gpus: int) -> dict[str, Any]:
    limits = {"memory": str(of.memory)} if of.memory else {}
    limits |= {of.gpu_resource: str(gpus)} if gpus else {}
    return {"requests": {"cpu": str(of.cpus), **limits}, **({"limits": limits} if limits else {})}


def _mount(shape: PilotShape) -> list[dict[str, Any]]:
    """Return the mounts of both containers."""
    return [
        {"name": "place", "mountPath": PLACE},
        {"name": "fleet", "mountPath": f"{PLACE}/fleet"},
        {"name": "handed", "mountPath": HANDED, "readOnly": True},
        *({"name": f"claim-{each.name}"[:63], "mountPath": each.path} for each in shape.settings.volumes),
        *([{"name": "storage", "mountPath": STORAGE_PLACE}] if shape.settings.storage else ()),
    ]
