"""Providers of monkey.yaml that are clouds: what they may say of the machines that are rented there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from monkey.spec.yaml import environment_names
from monkey.spec.yaml.mistakes import Mistake, Mistakes, describe, suggest
from monkey.spec.yaml.units import duration, size

#: Keys of all clouds, besides those of all providers.
_BOTH = (
    *("region", "image", "disk", "max_instances", "spot", "orphan_timeout"),
    *("price", "max_cost", "max_lifetime", "secrets"),
)
#: The keys of each cloud, besides those of all providers.
KEYS = {
    "aws": (*_BOTH, "instance_type", "vpc", "subnets"),
    "gcp": (*_BOTH, "gcp_project", "zones", "machine_type", "network", "subnetwork"),
}
#: Of each, the one that says which machines.
TYPE_KEYS = {"aws": "instance_type", "gcp": "machine_type"}
#: Bytes of a machine's disk.
DISK = 50 << 30
_LEAST_DISK, _MOST_DISK = 8 << 30, 16 << 40
#: Seconds without the store after which a machine ends itself; fewer than an outage takes would end what goes on.
ORPHAN_TIMEOUT = 900.0
_LEAST_ORPHAN = 120.0
#: Seconds that a sweep has there at least: machines need minutes to boot.
LEAST_LIFETIME = 600.0
#: Seconds that a sweep may have there, where nobody says otherwise; and however it is said.
LIFETIME, _MOST_LIFETIME = 7 * 86400.0, 366 * 86400.0
#: Machines of one provider, at most.
_MOST_INSTANCES = 1000
_AMOUNT = "above 0 and below 1,000,000"


@dataclass(frozen=True)
class Cloud:
    """What is to be rented, and for how much."""

    region: str
    #: Types of machines, the one that is liked best first. Which of them one gets is the cloud's choice.
    types: tuple[str, ...]
    #: As the user wrote it; None for Debian of the machines' architecture.
    image: str | None = None
    #: Bytes.
    disk: int = DISK
    max_instances: int = 1
    #: Machines that the cloud may take back.
    spot: bool = False
    #: Seconds without the store after which a machine ends itself.
    orphan_timeout: float = ORPHAN_TIMEOUT
    #: USD an hour of one machine, by types; types whose price nobody wrote down are not in it.
    prices: Mapping[str, float] = field(default_factory=dict)
    #: USD that all of it may cost at worst until the sweeps expire; None for no limit.
    max_cost: float | None = None
    #: Seconds from now that `expires` of a sweep may be away.
    max_lifetime: float = LIFETIME
    #: Names of secrets to where the machines' role reads their values.
    secrets: Mapping[str, str] = field(default_factory=dict)
    #: A network that is there already (`vpc`, `network`); None for one of our own.
    network: str | None = None
    #: Its parts that machines may be in (`subnets`, `subnetwork`).
    subnets: tuple[str, ...] = ()
    #: For `gcp`: the cloud's own project, and the zones of the region; () for all.
    gcp_project: str = ""
    zones: tuple[str, ...] = ()

    @property
    def dearest(self) -> float | None:
        """The highest price of a machine, in USD an hour; None where one of them is not known."""
        known = [self.prices.get(type_) for type_ in self.types]
        return None if None in known else max(price for price in known if price is not None)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Types whose price is not known, where that of another one is."""
        return tuple(type_ for type_ in self.types if type_ not in self.prices) if self.prices else ()


@dataclass(frozen=True)
class _Form:
    """What a text of a cloud's must look like."""

    pattern: str
    what: str
    hint: str

    def mistake(self, raw: Any, path: tuple[str | int, ...]) -> Iterator[Mistake]:
        if not isinstance(raw, str) or not re.fullmatch(self.pattern, raw):
            yield Mistake(path, f"expected {self.what}, found {describe(raw)}", self.hint)


_TYPE = {
    "aws": _Form(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", "a type of instances", "write one as AWS does: g5.xlarge"),
    "gcp": _Form(r"[a-z][a-z0-9]*-[a-z0-9-]+", "a type of machines", "write one as Google does: g2-standard-8"),
}
_REGION = {
    "aws": _Form(r"[a-z]{2}(-[a-z]+)+-[0-9]+", "a region", "write one as AWS does, without a zone: eu-central-1"),
    "gcp": _Form(r"[a-z]+-[a-z]+[0-9]+", "a region", "write one as Google does, without a zone: europe-west4"),
}
_IMAGE = {
    "aws": _Form(
        r"ami-[0-9a-f]+|resolve:ssm:/?[A-Za-z0-9_./-]+",
        "an image",
        "write ami-…, or resolve:ssm:/NAME-OF-A-PUBLIC-PARAMETER; leave it out for Debian",
    ),
    "gcp": _Form(
        r"[a-z0-9.:_-]+(/[a-z0-9_-]+)+",
        "an image",
        "write PROJECT/FAMILY (debian-cloud/debian-12), or projects/P/global/images/NAME; leave it out for Debian",
    ),
}
_SECRET = {
    "aws": _Form(
        r"ssm:/?[A-Za-z0-9_./-]+|secretsmanager:[A-Za-z0-9/_+=.@:-]+",
        "where the machines read it",
        "write ssm:/PATH, or secretsmanager:NAME (or its ARN)",
    ),
    "gcp": _Form(
        r"(projects/[a-z0-9.:-]+/secrets/)?[A-Za-z0-9_-]+(/versions/([0-9]+|latest))?",
        "where the machines read it",
        "write NAME, or projects/P/secrets/NAME, as Secret Manager has it",
    ),
}
_VPC = _Form(r"vpc-[0-9a-f]+", "a VPC", "write vpc-…, and subnets: [subnet-…] of it; or neither, for one of our own")
_SUBNET = _Form(r"subnet-[0-9a-f]+", "a subnet", "write subnet-…")
_NETWORK = _Form(r"[a-z0-9./:-]+", "a network's name", "write one, and subnetwork:, or neither, for one of our own")
_PROJECT = _Form(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]", "a project of Google's", "write its id: my-project-1")
_ZONE = _Form(r"[a-z]+-[a-z]+[0-9]+-[a-z]", "a zone", "write zones of the region: [europe-west4-a]")


def read(kind: str, raw: Mapping[str, Any]) -> Cloud:
    """Return the cloud that an entry without mistakes, of type `kind`, describes."""
    types = _listed(raw[TYPE_KEYS[kind]])
    subnets = raw.get("subnets", ()) if kind == "aws" else filter(None, [raw.get("subnetwork")])
    defaults = Cloud("", ())
    return Cloud(
        region=raw["region"],
        types=types,
        image=raw.get("image"),
        disk=size(raw["disk"]) if "disk" in raw else defaults.disk,
        max_instances=raw.get("max_instances", defaults.max_instances),
        spot=raw.get("spot", defaults.spot),
        orphan_timeout=duration(raw["orphan_timeout"]) if "orphan_timeout" in raw else defaults.orphan_timeout,
        prices=_prices(raw.get("price"), types),
        max_cost=float(raw["max_cost"]) if "max_cost" in raw else None,
        max_lifetime=duration(raw["max_lifetime"]) if "max_lifetime" in raw else LIFETIME,
        secrets=dict(raw.get("secrets") or {}),
        network=raw.get("vpc" if kind == "aws" else "network"),
        subnets=tuple(subnets),
        gcp_project=raw.get("gcp_project", ""),
        zones=tuple(raw.get("zones", ())),
    )


def mistakes(kind: str, raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with an entry of type `kind`, but for its keys and what all providers have."""
    types = TYPE_KEYS[kind]
    for key, example in (("region", _REGION[kind].hint), (types, _TYPE[kind].hint)):
        if key not in raw:
            yield Mistake((), f"expected {key}, found none", example)
    if "region" in raw:
        yield from _REGION[kind].mistake(raw["region"], ("region",))
    if types in raw:
        yield from _types(kind, types, raw[types])
    if "image" in raw:
        yield from _IMAGE[kind].mistake(raw["image"], ("image",))
    yield from _amounts(raw)
    yield from _money(raw, types)
    yield from _secrets(kind, raw.get("secrets", {}))
    yield from _aws(raw) if kind == "aws" else _gcp(raw)


def _types(kind: str, key: str, raw: Any) -> Iterator[Mistake]:
    if kind == "gcp" or not isinstance(raw, list):
        yield from _TYPE[kind].mistake(raw, (key,))
    else:
        yield from _texts(raw, key, _TYPE[kind])


def _texts(raw: Any, key: str, form: _Form) -> Iterator[Mistake]:
    if not isinstance(raw, list) or not raw:
        yield Mistake((key,), f"expected a list, each {form.what}, found {describe(raw)}", form.hint)
        return
    for at, each in enumerate(raw):
        yield from form.mistake(each, (key, at))
        if each in raw[:at]:
            yield Mistake((key, at), f"{each!r} is there twice", "remove one of them")


def _amounts(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    gib = 1 << 30
    yield from _between(raw, "disk", size, _LEAST_DISK, _MOST_DISK, f"{_LEAST_DISK // gib}GiB to 16TiB")
    yield from _between(raw, "orphan_timeout", duration, _LEAST_ORPHAN, 86400.0, "2m to 1d")
    yield from _between(raw, "max_lifetime", duration, LEAST_LIFETIME, _MOST_LIFETIME, "10m to 366d")
    if "max_instances" in raw:
        found = raw["max_instances"]
        if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= _MOST_INSTANCES:
            message = f"expected a number of machines from 1 to {_MOST_INSTANCES}, found {describe(found)}"
            yield Mistake(("max_instances",), message, "write how many there may be at once")
    if not isinstance(raw.get("spot", False), bool):
        yield Mistake(("spot",), f"expected true or false, found {describe(raw['spot'])}", "write spot: true")


def _between(
    raw: Mapping[str, Any], key: str, reads: Callable[[Any], float], least: float, most: float, said: str
) -> Iterator[Mistake]:
    if key not in raw:
        return
    try:
        if not least <= reads(raw[key]) <= most:
            yield Mistake((key,), f"expected from {said}, found {describe(raw[key])}", "write one, with its unit")
    except Mistakes as error:
        yield from (mistake.under((key,)) for mistake in error.mistakes)


def _money(raw: Mapping[str, Any], types: str) -> Iterator[Mistake]:
    price, wanted = raw.get("price", 1), _listed(raw.get(types, ()))
    example = next((each for each in wanted if isinstance(each, str)), "g5.xlarge")
    hint = f"write price: USD an hour of one machine, 1.01, or by types, {{{example}: 1.01}}"
    for type_, each in price.items() if price and isinstance(price, dict) else [(None, price)]:
        path: tuple[str | int, ...] = ("price",) if type_ is None else ("price", type_)
        if type_ is not None and type_ not in wanted:
            yield Mistake(path, f"{type_!r} is no type of this provider", suggest(type_, wanted, types), on_key=True)
        elif not _is_amount(each):
            yield Mistake(path, f"expected a price, {_AMOUNT}, found {describe(each)}", hint)
    if "max_cost" not in raw:
        return
    if not _is_amount(raw["max_cost"]):
        yield Mistake(("max_cost",), f"expected USD, {_AMOUNT}, found {describe(raw['max_cost'])}", "write 50")
    unknown = [] if "price" in raw else list(wanted)
    unknown = [type_ for type_ in wanted if type_ not in price] if isinstance(price, dict) else unknown
    if unknown:
        message = f"max_cost cannot be held: nobody says what {' and '.join(map(str, unknown))} costs"
        yield Mistake(("max_cost",), message, f"{hint}, beside it", on_key=True)


def _is_amount(raw: Any) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and 0 < raw < 1e6


def _secrets(kind: str, raw: Any) -> Iterator[Mistake]:
    if not isinstance(raw, dict):
        hint = f"write names and places: {{WANDB_API_KEY: {'ssm:/team/wandb' if kind == 'aws' else 'wandb'}}}"
        yield Mistake(("secrets",), f"expected a mapping, found {describe(raw)}", hint)
        return
    for name, place in raw.items():
        path = ("secrets", name)
        if not isinstance(name, str) or not environment_names.NAME.match(name) or name.startswith("MONKEY_"):
            hint = "use letters, digits and '_'; MONKEY_ is monkey's own"
            yield Mistake(path, f"{name!r} cannot name a secret", hint, on_key=True)
        elif environment_names.is_needed(name):
            yield Mistake(path, f"{name!r} is no secret: programs need it to run", "take it out", on_key=True)
        else:
            yield from _SECRET[kind].mistake(place, path)


def _aws(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    if "vpc" in raw:
        yield from _VPC.mistake(raw["vpc"], ("vpc",))
    if "subnets" in raw:
        yield from _texts(raw["subnets"], "subnets", _SUBNET)
    yield from _pair(raw, "vpc", "subnets")


def _gcp(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    if "gcp_project" not in raw:
        yield Mistake((), "expected gcp_project, found none", _PROJECT.hint)
    else:
        yield from _PROJECT.mistake(raw["gcp_project"], ("gcp_project",))
    for key in ("network", "subnetwork"):
        if key in raw:
            yield from _NETWORK.mistake(raw[key], (key,))
    yield from _pair(raw, "network", "subnetwork")
    if "zones" in raw:
        yield from _texts(raw["zones"], "zones", _ZONE)
        for at, zone in enumerate(raw["zones"] if isinstance(raw["zones"], list) else ()):
            if re.fullmatch(_ZONE.pattern, str(zone)) and not zone.startswith(f"{raw.get('region')}-"):
                yield Mistake(("zones", at), f"{zone!r} is not in the region {raw.get('region')!r}", _ZONE.hint)


def _pair(raw: Mapping[str, Any], one: str, other: str) -> Iterator[Mistake]:
    for key, missing in ((one, other), (other, one)):
        if key in raw and missing not in raw:
            yield Mistake((key,), f"{key} needs {missing} beside it", f"write {missing}: too", on_key=True)


def _prices(raw: Any, types: tuple[str, ...]) -> dict[str, float]:
    if isinstance(raw, dict):
        return {type_: float(price) for type_, price in raw.items()}
    return {} if raw is None else dict.fromkeys(types, float(raw))


def _listed(raw: Any) -> tuple[Any, ...]:
    return tuple(raw) if isinstance(raw, list | tuple) else (raw,)
