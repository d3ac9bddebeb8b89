"""Entries of `providers:` in monkey.yaml: machines of one kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey.spec.project import cloud, ssh_host
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, find_nearest_word, suggest_word
from monkey.spec.yaml.units import parse_duration, parse_size

#: A project or provider: part of keys in the store.
STORE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
#: Where agents keep everything on a host.
_DEFAULT_WORKDIR = "~/.monkey"
_PLANNED_TYPES = ("azure", "slurm", "kubernetes", "k8s")
_COMMON_KEYS = ("type", "max_slots", "idle_timeout", "cache_size")
#: The keys of each type.
_KEYS = {"local": _COMMON_KEYS, "ssh": (*_COMMON_KEYS, "hosts", "workdir", "gpus")}
_KEYS |= {kind: (*_COMMON_KEYS, *keys) for kind, keys in cloud.CLOUD_KEYS.items()}
#: Seconds without work after which an agent leaves: on a host it is cheap to stay, and dear to be started; in a cloud
#: staying is what costs.
_IDLE_TIMEOUT_SECONDS = {"local": 10.0, "ssh": 600.0, "aws": 300.0, "gcp": 300.0}
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
    #: For `aws` and `gcp`: what is rented there.
    cloud: CloudSettings | None = None

    @property
    def rented(self) -> CloudSettings:
        """`cloud`, of a provider whose type is a cloud's."""
        assert self.cloud is not None
        return self.cloud


def parse_provider(raw: Mapping[str, Any] | None) -> Provider:
    """Return the provider that an entry without mistakes describes."""
    raw = raw or {}
    kind = raw.get("type", "local")
    idle = parse_duration(raw["idle_timeout"]) if "idle_timeout" in raw else _IDLE_TIMEOUT_SECONDS[kind]
    kept = parse_size(raw["cache_size"]) if "cache_size" in raw else None
    gpus = raw.get("gpus", "auto")
    return Provider(
        type=kind,
        max_slots=raw.get("max_slots"),
        idle_timeout=idle,
        cache_size=kept,
        hosts=tuple(raw.get("hosts", ())),
        workdir=raw.get("workdir", _DEFAULT_WORKDIR),
        gpus=gpus if isinstance(gpus, str) else tuple(gpus),
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
        if body is None:
            continue
        if not isinstance(body, dict):
            found.append(Mistake(path, f"expected a mapping, found {describe_value(body)}", "write {type: local}"))
            continue
        found += [mistake.under(path) for mistake in _find_entry_mistakes(body)]
    return found


def find_unknown_providers(
    names: Iterable[str], known: Mapping[str, Provider] | None, *, named: bool
) -> Iterator[Mistake]:
    """Yield which of a spec's providers are not in monkey.yaml; `named`: the spec names them, and takes no default."""
    if known is None:
        return
    there = sorted(known)
    for at, name in enumerate(names):
        if name not in there and named:
            near = find_nearest_word(name, there)
            hint = f"did you mean {near!r}?" if near else f"monkey.yaml has: {', '.join(there)}"
            yield Mistake(("provider", at), f"unknown provider {name!r}", hint)
        elif name not in there:
            told = f"the spec names no provider, and the default {name!r} is not in monkey.yaml"
            yield Mistake((), told, "write " + " or ".join(f"`provider: {each}`" for each in there))


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
    if kind == "ssh":
        yield from _find_ssh_mistakes(body)
    elif kind in cloud.CLOUD_KEYS:
        yield from cloud.find_cloud_mistakes(kind, body)


def _make_type_mistake(kind: Any) -> Mistake:
    if kind in _PLANNED_TYPES:
        hint = "use one of local, ssh, aws, gcp; agents on other machines can join: monkey-agent --store URL"
        return Mistake(("type",), f"providers of type {kind!r} are not there yet", hint)
    return Mistake(
        ("type",), f"expected a provider's type, found {describe_value(kind)}", "write type: local, ssh, aws or gcp"
    )


def _find_common_mistakes(body: Mapping[str, Any]) -> Iterator[Mistake]:
    if "max_slots" in body and not _is_whole_number(slots := body["max_slots"], 1, 4096):
        message = f"expected a whole number of 1 or more, found {describe_value(slots)}"
        yield Mistake(("max_slots",), message, "leave it out for as many jobs as fit")
    for key, read_it in (("idle_timeout", parse_duration), ("cache_size", parse_size)):
        if key in body:
            try:
                read_it(body[key])
            except MistakesError as error:
                yield from (mistake.under((key,)) for mistake in error.mistakes)


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
