"""Entries of `providers:` in monkey.yaml: machines of one kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey.spec.job.counted_resources import MEASURED_RESOURCES, CountedResources, parse_counts
from monkey.spec.job.lease_length import LEASE, parse_lease
from monkey.spec.job.runtime_kind import RUNTIME_KINDS, RuntimeKind
from monkey.spec.machines.fleet_name import SEPARATOR
from monkey.spec.project import cloud, ssh_host
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.engines import kubernetes_settings, slurm_settings
from monkey.spec.project.engines.kubernetes_settings import KubernetesSettings
from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey.spec.project.mounts import Mount, find_mount_mistakes, parse_mounts
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, find_nearest_word, suggest_word
from monkey.spec.yaml.units import format_duration, parse_duration, parse_size

#: A project or provider: part of keys in the store.
STORE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
#: Where agents keep everything on a host.
_DEFAULT_WORKDIR = "~/.monkey"
_PLANNED_TYPES = ("azure",)
_TYPES = "local, ssh, slurm, kubernetes, aws or gcp"
#: Types of which `monkey init --provider` writes a provider.
MADE_BY_INIT = ("aws", "gcp", "slurm", "kubernetes", "ssh")
_COMMON_KEYS = ("type", "max_slots", "idle_timeout", "cache_size", "resources", "lease")
#: The keys of machines, and of each type: on Kubernetes, the cluster runs images.
_MACHINE_KEYS = (*_COMMON_KEYS, "runtime")
_KEYS = {"local": _MACHINE_KEYS, "ssh": (*_MACHINE_KEYS, "hosts", "workdir", "gpus", "mounts")}
_KEYS["slurm"] = (*_MACHINE_KEYS, *slurm_settings.SLURM_KEYS)
_KEYS["kubernetes"] = (*_COMMON_KEYS, *kubernetes_settings.KUBERNETES_KEYS)
_KEYS |= {kind: (*_MACHINE_KEYS, *keys) for kind, keys in cloud.CLOUD_KEYS.items()}
#: Seconds without work after which an agent leaves: on a host it is cheap to stay, and dear to be started; in a cloud
#: staying is what costs; in a queue others wait.
_IDLE_TIMEOUT_SECONDS = {"local": 10.0, "ssh": 600.0, "slurm": 30.0, "kubernetes": 30.0, "aws": 300.0, "gcp": 300.0}
#: Keys of all types to what reads their values.
_READERS: Mapping[str, Callable[[Any], object]] = {
    "idle_timeout": parse_duration,
    "cache_size": parse_size,
    "resources": parse_counts,
    "lease": parse_lease,
}
#: GPUs of a machine, at most.
_MAX_GPU_INDEX = 64


@dataclass(frozen=True)
class Provider:
    """An entry of `providers:`: machines of one kind."""

    type: str = "local"
    #: Jobs at once on one machine; None for as many as its resources allow.
    max_slots: int | None = None
    #: Seconds without work after which an agent leaves.
    idle_timeout: float = _IDLE_TIMEOUT_SECONDS["local"]
    #: Bytes that a machine may keep of code, environments and datasets; None for half of its disk.
    cache_size: int | None = None
    #: For `ssh`: hosts, as OpenSSH's client knows them.
    hosts: tuple[str, ...] = ()
    #: For `ssh`: where agents keep everything on a host.
    workdir: str = _DEFAULT_WORKDIR
    #: For `ssh`: "auto", all GPUs but those on which others compute; or the driver's numbers of ours.
    gpus: str | tuple[int, ...] = "auto"
    #: The program that runs images; None for the first that works on a machine.
    runtime: RuntimeKind | None = None
    #: The counted resources that each machine has.
    resources: CountedResources = ()
    #: Seconds that an agent may be silent before others take its jobs over.
    lease: float = LEASE
    #: For `ssh`, `aws` and `gcp`: what must be mounted before a job begins.
    mounts: tuple[Mount, ...] = ()
    #: For `slurm`: what pilots are asked of it.
    slurm: SlurmSettings | None = None
    #: For `kubernetes`: what pilots are asked of it.
    kubernetes: KubernetesSettings | None = None
    #: For `aws` and `gcp`: what is rented there.
    cloud: CloudSettings | None = None

    @property
    def rented(self) -> CloudSettings:
        """`cloud`, of a provider whose type is a cloud's."""
        assert self.cloud is not None
        return self.cloud

    @property
    def queued(self) -> SlurmSettings:
        """`slurm`, of a provider whose type that is."""
        assert self.slurm is not None
        return self.slurm

    @property
    def clustered(self) -> KubernetesSettings:
        """`kubernetes`, of a provider whose type that is."""
        assert self.kubernetes is not None
        return self.kubernetes


def parse_provider(raw: Mapping[str, Any] | None) -> Provider:
    """Return the provider that an entry without mistakes describes."""
    raw = raw or {}
    kind = raw.get("type", "local")
    idle = parse_duration(raw["idle_timeout"]) if "idle_timeout" in raw else _IDLE_TIMEOUT_SECONDS[kind]
    kept = parse_size(raw["cache_size"]) if "cache_size" in raw else None
    gpus = raw.get("gpus", "auto") if kind == "ssh" else "auto"
    return Provider(
        type=kind,
        max_slots=raw.get("max_slots"),
        idle_timeout=idle,
        cache_size=kept,
        lease=parse_lease(raw["lease"]) if "lease" in raw else LEASE,
        runtime=raw.get("runtime"),
        resources=parse_counts(raw.get("resources", {})),
        mounts=parse_mounts(raw.get("mounts")),
        hosts=tuple(raw.get("hosts", ())),
        workdir=raw.get("workdir", _DEFAULT_WORKDIR),
        gpus=gpus if isinstance(gpus, str) else tuple(gpus),
        slurm=slurm_settings.parse_slurm(raw) if kind == "slurm" else None,
        kubernetes=kubernetes_settings.parse_kubernetes(raw) if kind == "kubernetes" else None,
        cloud=cloud.parse_cloud(kind, raw) if kind in cloud.CLOUD_KEYS else None,
    )


def find_provider_mistakes(raw: Any) -> list[Mistake]:
    """Return what is wrong with the whole of `providers:`."""
    if not isinstance(raw, dict) or not raw:
        return [
            Mistake(("providers",), f"expected providers by name, found {describe_value(raw)}", "write {local: {}}")
        ]
    found = []
    for name, body in raw.items():
        path = ("providers", name)
        if not STORE_NAME_PATTERN.match(name):
            hint = "use letters, digits, '.', '_' and '-': 63 of them at most, the first a letter or a digit"
            found.append(Mistake(path, f"{name!r} cannot name a provider", hint, on_key=True))
        elif SEPARATOR in name or name.endswith("."):  # `cloud.` and a choice would be read as another provider's
            hint = f"use a name without {SEPARATOR!r} and without '.' at its end"
            hint += f": {SEPARATOR!r} stands in the names of machines that specs choose"
            found.append(Mistake(path, f"{name!r} cannot name a provider", hint, on_key=True))
        if body is None:
            continue
        if not isinstance(body, dict):
            found.append(Mistake(path, f"expected a mapping, found {describe_value(body)}", "write {type: local}"))
            continue
        found += [mistake.under(path) for mistake in _find_entry_mistakes(body)]
    return found


def find_scarce_counts(
    counted: CountedResources, names: Iterable[str], known: Mapping[str, Provider] | None
) -> Iterator[Mistake]:
    """Yield which counted resources of a job no machine of the named providers has in that number."""
    there = {name: dict(known[name].resources) for name in names if known is not None and name in known}
    if not there or any(all(has.get(each, 0) >= count for each, count in counted) for has in there.values()):
        return
    for each, count in counted:
        if (most := max(has.get(each, 0) for has in there.values())) >= count:
            continue
        near = find_nearest_word(each, [*MEASURED_RESOURCES, *(name for has in there.values() for name in has)])
        where = " or ".join(there)
        hint = f"write resources: {{{each}: {count}}} at {where} in monkey.yaml, if its machines have so many"
        hint = f"did you mean {near!r}? Or {hint}" if near and near != each else hint
        message = f"a job asks for {count} {each}, and no machine of {where} has more than {most}"
        yield Mistake(("resources", each), message if most else message.replace("more than 0", "any"), hint)
        return
    told = ", ".join(f"{count} {each}" for each, count in counted)
    yield Mistake(("resources",), f"a job asks for {told}, and no machine of one provider has all of that")


def _find_entry_mistakes(body: Mapping[str, Any]) -> Iterator[Mistake]:
    kind = body.get("type", "local")
    if not isinstance(kind, str) or kind not in _KEYS:
        yield _make_type_mistake(kind)
        return
    for key in body:
        if key not in _KEYS[kind]:
            others = [other for other, keys in _KEYS.items() if key in keys]
            beside = f"write type: {' or '.join(others)} beside it"
            hint = beside if others and kind == "local" else suggest_word(key, _KEYS[kind], "keys")
            yield Mistake((key,), f"unknown key {key!r} of a provider of type {kind}", hint, on_key=True)
    yield from _find_common_mistakes(body)
    if "mounts" in body and "mounts" in _KEYS[kind]:
        found = find_mount_mistakes(body["mounts"], rented=kind in cloud.CLOUD_KEYS)
        yield from (mistake.under(("mounts",)) for mistake in found)
    if kind in ("slurm", "kubernetes"):
        yield from _find_lease_mistakes(body)
    if kind == "ssh":
        yield from _find_ssh_mistakes(body)
    elif kind == "slurm":
        yield from slurm_settings.find_slurm_mistakes(body)
    elif kind == "kubernetes":
        yield from kubernetes_settings.find_kubernetes_mistakes(body)
    elif kind in cloud.CLOUD_KEYS:
        yield from cloud.find_cloud_mistakes(kind, body)
        yield from _find_orphan_mistakes(body)


def _make_type_mistake(kind: Any) -> Mistake:
    if kind in _PLANNED_TYPES:
        hint = f"use {_TYPES}; agents on other machines can join: monkey-agent --store URL"
        return Mistake(("type",), f"providers of type {kind!r} are not there yet", hint)
    return Mistake(
        ("type",),
        f"expected a provider's type, found {describe_value(kind)}",
        f"write type: {_TYPES}",
    )


def _find_common_mistakes(body: Mapping[str, Any]) -> Iterator[Mistake]:
    if "max_slots" in body and not _is_whole_number(slots := body["max_slots"], 1, 4096):
        message = f"expected a whole number of 1 or more, found {describe_value(slots)}"
        yield Mistake(("max_slots",), message, "leave it out for as many jobs as fit")
    if "runtime" in body and body["runtime"] not in RUNTIME_KINDS:
        message = f"expected a runtime of containers, found {describe_value(body['runtime'])}"
        hint = f"write one of {', '.join(RUNTIME_KINDS)}; leave it out for the first that works on a machine"
        yield Mistake(("runtime",), message, hint)
    for key, read_it in _READERS.items():
        if key in body:
            try:
                read_it(body[key])
            except MistakesError as error:
                yield from (mistake.under((key,)) for mistake in error.mistakes)


def _find_lease_mistakes(body: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield whether a lease is too long for pilots: those that live for less never see that one is over."""
    try:
        lease, time = parse_lease(body["lease"]), parse_duration(body["time"])
    except (KeyError, MistakesError):
        return
    if LEASE < lease > time / 2:
        message = f"expected a lease of half a pilot's time at most ({format_duration(time / 2)}), found "
        yield Mistake(("lease",), message + format_duration(lease), "write a longer time, or leave the lease out")


def _find_orphan_mistakes(body: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield whether rented machines would end themselves before their lease is over: a heartbeat may be lost."""
    try:
        lease, timeout = parse_lease(body["lease"]), parse_duration(body["orphan_timeout"])
    except (KeyError, MistakesError):
        return
    if timeout < lease:
        message = f"expected an orphan_timeout of the lease ({format_duration(lease)}) or longer, found "
        yield Mistake(("orphan_timeout",), message + format_duration(timeout), "write 15m, or a shorter lease")


def _find_ssh_mistakes(body: Mapping[str, Any]) -> Iterator[Mistake]:
    yield from _find_host_mistakes(body.get("hosts"))
    workdir, gpus = body.get("workdir", _DEFAULT_WORKDIR), body.get("gpus", "auto")
    if not isinstance(workdir, str) or not re.fullmatch(r"~?/+[^/].*", workdir) or ".." in workdir.split("/"):
        message = f"expected a directory on the hosts, found {describe_value(workdir)}"
        yield Mistake(("workdir",), message, f"write one below / or ~/, without '..', as {_DEFAULT_WORKDIR} is")
    yield from _find_gpu_mistakes(gpus)


def _find_gpu_mistakes(raw: Any) -> Iterator[Mistake]:
    hint = "write auto, or numbers as nvidia-smi shows them: [0, 2]; [] for none"
    if raw != "auto" and not isinstance(raw, list):
        yield Mistake(("gpus",), f"expected auto or numbers of GPUs, found {describe_value(raw)}", hint)
    for at, gpu in enumerate(raw if isinstance(raw, list) else ()):
        if not _is_whole_number(gpu, 0, _MAX_GPU_INDEX):
            yield Mistake(("gpus", at), f"expected the number of a GPU, found {describe_value(gpu)}", hint)


def _find_host_mistakes(raw: Any) -> Iterator[Mistake]:
    if not isinstance(raw, list) or not raw:
        found = "none" if raw is None else describe_value(raw)
        path = () if raw is None else ("hosts",)
        yield Mistake(path, f"expected hosts, found {found}", "write hosts: [gpu1, user@gpu2:2222]")
        return
    for at, name in enumerate(raw):
        if not isinstance(name, str):
            yield Mistake(
                ("hosts", at), f"expected a host, found {describe_value(name)}", "write its name, in quotes if need be"
            )
            continue
        if _normalize_host(name) in map(_normalize_host, map(str, raw[:at])):
            yield Mistake(("hosts", at), f"the host {name!r} is there twice", "remove one of them")
            continue
        try:
            ssh_host.parse_ssh_host(name)
        except FleetError as exc:
            yield Mistake(("hosts", at), exc.message, exc.hint)


def _normalize_host(name: str) -> str:
    """Return a host's name in its one form: OpenSSH knows no capitals there, but in the user's name."""
    user, at, there = name.rpartition("@")
    return user + at + there.lower()


def _is_whole_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
