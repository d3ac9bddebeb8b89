"""Providers of type `kubernetes`: pilots that run as pods of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from monkey.spec.project.engines.pilot_mistakes import PILOT_KEYS, find_pilot_mistakes
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value
from monkey.spec.yaml.units import parse_duration, parse_size

#: Keys that hold the name of an object of the cluster.
_NAME_KEYS = ("service_account", "priority_class", "queue")
#: The keys, besides those of all providers.
KUBERNETES_KEYS = (
    *(*PILOT_KEYS, "context", "namespace", "image", "time", "gpu_resource", "node_selector", "tolerations"),
    *(*_NAME_KEYS, "spot", "volumes", "storage", "pod", "create_namespace"),
)
_DEFAULT_GPU_RESOURCE = "nvidia.com/gpu"
#: Seconds that a pilot has if no `time` is written; at least, since it needs some to start and leave; and at most,
#: since the link by which it fetches its code lives no longer.
_DEFAULT_TIME_SECONDS, _MIN_TIME_SECONDS, MAX_TIME_SECONDS = 86400.0, 120.0, 7 * 86400.0
_MAX_GPUS = 64
#: A namespace or a volume; the name of another object; of a resource or a label.
_LABEL_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_QUALIFIED_NAME = re.compile(r"(?:[a-z0-9][a-z0-9.-]{0,252}/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]{0,500}")
_DIRECTORY = re.compile(r"/[^\x00-\x1f:]*[^\x00-\x1f:/]")
_TOLERATION_KEYS = ("key", "operator", "value", "effect", "tolerationSeconds")


@dataclass(frozen=True)
class ClaimedVolume:
    """A volume of the cluster that pilots mount."""

    name: str
    #: The PersistentVolumeClaim, and where a pod sees it.
    claim: str
    path: str


@dataclass(frozen=True)
class KubernetesSettings:
    """What pilots are asked of Kubernetes."""

    #: The context of the kubeconfig.
    context: str
    #: A pod's image, which has a Python.
    image: str
    #: "" for the project's name.
    namespace: str = ""
    #: Whether apply makes the namespace where it is missing.
    create_namespace: bool = False
    #: At most so many at once.
    pilots: int = 1
    #: Seconds that one pod has.
    time: float = _DEFAULT_TIME_SECONDS
    #: Of one pilot; memory in bytes, 0 for no limit of ours.
    cpus: int = 1
    memory: int = 0
    gpus: int = 0
    gpu_resource: str = _DEFAULT_GPU_RESOURCE
    #: Labels of nodes, by their names.
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Mapping[str, Any], ...] = ()
    #: Whether pods run on nodes that the cloud may take back, and on no others.
    spot: bool = False
    #: A name each; "" for none.
    service_account: str = ""
    priority_class: str = ""
    #: Kueue's LocalQueue.
    queue: str = ""
    volumes: tuple[ClaimedVolume, ...] = ()
    #: Bytes of a volume claim that apply makes; 0 for none.
    storage: int = 0
    #: The store's directory as pods see it; "" for a bucket.
    store_path: str = ""
    #: A part of a pod's spec, which is merged into ours last.
    pod: Mapping[str, Any] = field(default_factory=dict)

    @property
    def architecture(self) -> str:
        """The processor of the nodes, as Kubernetes calls it."""
        return dict(self.node_selector).get("kubernetes.io/arch", "amd64")


def parse_kubernetes(raw: Mapping[str, Any]) -> KubernetesSettings:
    """Return what an entry without mistakes says."""
    volumes = raw.get("volumes", {})
    return KubernetesSettings(
        context=raw["context"],
        image=raw["image"],
        namespace=raw.get("namespace", ""),
        create_namespace=raw.get("create_namespace", False),
        pilots=raw.get("pilots", 1),
        time=parse_duration(raw.get("time", _DEFAULT_TIME_SECONDS)),
        cpus=raw.get("cpus", 1),
        memory=parse_size(raw["memory"]) if "memory" in raw else 0,
        gpus=raw.get("gpus", 0),
        gpu_resource=raw.get("gpu_resource", _DEFAULT_GPU_RESOURCE),
        node_selector=tuple(raw.get("node_selector", {}).items()),
        tolerations=tuple(raw.get("tolerations", ())),
        spot=raw.get("spot", False),
        service_account=raw.get("service_account", ""),
        priority_class=raw.get("priority_class", ""),
        queue=raw.get("queue", ""),
        volumes=tuple(ClaimedVolume(name, of["claim"], of["path"]) for name, of in volumes.items()),
        storage=parse_size(raw["storage"]) if "storage" in raw else 0,
        store_path=raw.get("store_path", ""),
        pod=raw.get("pod", {}),
    )


def find_kubernetes_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with an entry, but for its keys and what all providers have."""
    yield from find_pilot_mistakes(raw)
    yield from _find_place_mistakes(raw)
    yield from _find_time_mistakes(raw)
    gpus = raw.get("gpus", 0)
    if not isinstance(gpus, int) or isinstance(gpus, bool) or not 0 <= gpus <= _MAX_GPUS:
        hint = f"write a number up to {_MAX_GPUS}; `gpu_resource:` says of what kind"
        yield Mistake(("gpus",), f"expected a number of GPUs, found {describe_value(gpus)}", hint)
    hint = f"write it as `kubectl describe node` shows it: {_DEFAULT_GPU_RESOURCE}"
    yield from _find_text_mistakes(raw, "gpu_resource", "the name of a resource", _QUALIFIED_NAME, hint)
    for key in _NAME_KEYS:
        yield from _find_text_mistakes(raw, key, "the name of an object", _OBJECT_NAME, "write it as kubectl shows it")
    yield from _find_node_mistakes(raw)
    yield from _find_volume_mistakes(raw)
    yield from _find_storage_mistakes(raw)
    yield from _find_switch_mistakes(raw)
    if not isinstance(pod := raw.get("pod", {}), dict):
        hint = "write pod: {hostNetwork: true}, as the spec of a Pod has it"
        yield Mistake(("pod",), f"expected a part of a pod's spec, found {describe_value(pod)}", hint)


def _find_switch_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    hints = {
        "spot": "write spot: true for nodes that the cloud may take back",
        "create_namespace": "write create_namespace: true to have `monkey apply` make a namespace that is missing",
    }
    for key, hint in hints.items():
        if not isinstance(said := raw.get(key, False), bool):
            yield Mistake((key,), f"expected true or false, found {describe_value(said)}", hint)


def _find_place_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    context, image = raw.get("context"), raw.get("image")
    if not isinstance(context, str) or not context or not context.isprintable():
        found = "none" if "context" not in raw else describe_value(context)
        hint = "write context: NAME; `kubectl config get-contexts -o name` lists yours"
        yield Mistake(("context",) if "context" in raw else (), f"expected a context of kubectl, found {found}", hint)
    if not isinstance(image, str) or not _IMAGE.fullmatch(image):
        found = "none" if "image" not in raw else describe_value(image)
        hint = "write image: python:3.12-slim, or one that has your libraries and a Python 3.11 or newer"
        yield Mistake(("image",) if "image" in raw else (), f"expected the image of a pod, found {found}", hint)
    hint = "use small letters, digits and '-': 63 of them at most"
    yield from _find_text_mistakes(raw, "namespace", "a namespace", _LABEL_NAME, hint)
    if str(raw.get("store_path", "")).startswith("~"):
        hint = "write an absolute path below that of one of `volumes:`"
        yield Mistake(("store_path",), "expected the store's directory in a pod, which has no home of yours", hint)


def _find_time_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    try:
        seconds = parse_duration(raw.get("time", _DEFAULT_TIME_SECONDS))
    except MistakesError as error:
        yield from (mistake.under(("time",)) for mistake in error.mistakes)
        return
    if not _MIN_TIME_SECONDS <= seconds <= MAX_TIME_SECONDS:
        yield Mistake(("time",), f"expected 2m to 7d, found {seconds:g}s", "write the time of one pod: time: 24h")


def _find_text_mistakes(
    raw: Mapping[str, Any], key: str, what: str, pattern: re.Pattern[str], hint: str
) -> Iterator[Mistake]:
    if key in raw and (not isinstance(raw[key], str) or not pattern.fullmatch(raw[key])):
        yield Mistake((key,), f"expected {what}, found {describe_value(raw[key])}", hint)


def _find_node_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    labels, tolerations = raw.get("node_selector", {}), raw.get("tolerations", [])
    hint = "write node_selector: {gpu: a100}, with text as values"
    if not isinstance(labels, dict):
        yield Mistake(("node_selector",), f"expected labels of nodes, found {describe_value(labels)}", hint)
        labels = {}
    for name, value in labels.items():
        if not isinstance(value, str):
            told = f"expected a label's text, found {describe_value(value)}"
            yield Mistake(("node_selector", name), told, "put it in quotes")
    hint = "write tolerations: [{key: nvidia.com/gpu, operator: Exists}]"
    if not isinstance(tolerations, list):
        yield Mistake(("tolerations",), f"expected a list, found {describe_value(tolerations)}", hint)
        return
    for at, each in enumerate(tolerations):
        if not isinstance(each, dict):
            yield Mistake(("tolerations", at), f"expected a toleration, found {describe_value(each)}", hint)
            continue
        for key in each:
            if key not in _TOLERATION_KEYS:
                known = f"a toleration has {', '.join(_TOLERATION_KEYS)}"
                yield Mistake(("tolerations", at, key), f"unknown key {key!r} of a toleration", known, on_key=True)


def _find_storage_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    try:
        if "storage" in raw and not parse_size(raw["storage"]):
            yield Mistake(("storage",), "expected a size, found 0", "write it like 40GiB")
    except MistakesError as error:
        yield from (mistake.under(("storage",)) for mistake in error.mistakes)


def _find_volume_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    volumes = raw.get("volumes", {})
    hint = "write volumes: {data: {claim: NAME, path: /data}}"
    if not isinstance(volumes, dict):
        yield Mistake(("volumes",), f"expected volumes by name, found {describe_value(volumes)}", hint)
        return
    paths = []
    for name, of in volumes.items():
        if not _LABEL_NAME.fullmatch(str(name)) or not isinstance(of, dict) or set(of) != {"claim", "path"}:
            yield Mistake(("volumes", name), f"expected a claim and a path, found {describe_value(of)}", hint)
            continue
        yield from (each.under(("volumes", name)) for each in _find_claim_mistakes(of))
        paths.append(str(of["path"]).rstrip("/"))
    path = raw.get("store_path")
    inside = any(str(path).startswith(f"{directory}/") or path == directory for directory in paths)
    if isinstance(path, str) and path.startswith("/") and not inside and not raw.get("pod"):
        yield Mistake(("store_path",), f"no volume is mounted at {path}", hint)


def _find_claim_mistakes(of: Mapping[str, Any]) -> Iterator[Mistake]:
    hint = "write the name of a PersistentVolumeClaim of the namespace"
    yield from _find_text_mistakes(of, "claim", "a claim", _OBJECT_NAME, hint)
    hint = "write a directory of the pod's own: /data"
    yield from _find_text_mistakes(of, "path", "an absolute path", _DIRECTORY, hint)
    if str(of["path"]).split("/")[1:2] == ["monkey"]:
        yield Mistake(("path",), "the agent itself has /monkey", hint)
