"""Providers of monkey.yaml that are clouds: what they may say of the machines that are rented there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from monkey.spec.project.cloud_text_forms import (
    IMAGE_FORMS,
    NETWORK_FORM,
    PROJECT_FORM,
    REGION_FORMS,
    SECRET_FORMS,
    SUBNET_FORM,
    TYPE_FORMS,
    VPC_FORM,
    ZONE_FORM,
    TextForm,
)
from monkey.spec.yaml import environment_names
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, suggest_word
from monkey.spec.yaml.units import parse_duration, parse_size

#: Keys of all clouds, besides those of all providers.
_SHARED_KEYS = (
    *("region", "image", "disk", "max_instances", "spot", "orphan_timeout"),
    *("price", "max_cost", "max_lifetime", "secrets", "mounts"),
)
#: The keys of each cloud, besides those of all providers.
CLOUD_KEYS = {
    "aws": (*_SHARED_KEYS, "instance_type", "vpc", "subnets"),
    "gcp": (*_SHARED_KEYS, "gcp_project", "zones", "machine_type", "network", "subnetwork"),
}
#: Of each, the one that says which machines.
MACHINE_TYPE_KEYS = {"aws": "instance_type", "gcp": "machine_type"}
#: Of each, the keys that a spec may set in place of the provider's.
CHOSEN_KEYS = {"aws": ("instance_type", "disk"), "gcp": ("machine_type", "disk", "zones")}
#: Bytes of a machine's disk.
_DEFAULT_DISK_BYTES = 50 << 30
_MIN_DISK_BYTES, _MAX_DISK_BYTES = 8 << 30, 16 << 40
#: Seconds without the store after which a machine ends itself; fewer than an outage takes would end what continues.
_ORPHAN_TIMEOUT_SECONDS = 900.0
_MIN_ORPHAN_TIMEOUT_SECONDS = 120.0
#: Seconds that a sweep has there at least: machines need minutes to boot.
MIN_LIFETIME_SECONDS = 600.0
#: Seconds that a sweep may have there, where nobody says otherwise; and however it is said.
_DEFAULT_LIFETIME_SECONDS, _MAX_LIFETIME_SECONDS = 7 * 86400.0, 366 * 86400.0
#: Machines of one provider, at most.
_MAX_INSTANCES = 1000
_AMOUNT_TEXT = "above 0 and below 1,000,000"


@dataclass(frozen=True)
class CloudSettings:
    """What is to be rented, and for how much."""

    region: str
    #: Types of machines, the one that is liked best first. Which of them one gets is the cloud's choice.
    types: tuple[str, ...]
    #: As the user wrote it; None for Debian of the machines' architecture.
    image: str | None = None
    #: Bytes.
    disk: int = _DEFAULT_DISK_BYTES
    max_instances: int = 1
    #: Machines that the cloud may take back.
    spot: bool = False
    #: Seconds without the store after which a machine ends itself.
    orphan_timeout: float = _ORPHAN_TIMEOUT_SECONDS
    #: USD an hour of one machine, by types; types whose price nobody wrote down are not in it.
    prices: Mapping[str, float] = field(default_factory=dict)
    #: USD that all of it may cost at worst until the sweeps expire; None for no limit.
    max_cost: float | None = None
    #: Seconds from now that `expires` of a sweep may be away.
    max_lifetime: float = _DEFAULT_LIFETIME_SECONDS
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


def parse_cloud(kind: str, raw: Mapping[str, Any]) -> CloudSettings:
    """Return the cloud that an entry without mistakes, of type `kind`, describes."""
    types = _as_tuple(raw[MACHINE_TYPE_KEYS[kind]])
    subnets = raw.get("subnets", ()) if kind == "aws" else filter(None, [raw.get("subnetwork")])
    defaults = CloudSettings("", ())
    return CloudSettings(
        region=raw["region"],
        types=types,
        image=raw.get("image"),
        disk=parse_size(raw["disk"]) if "disk" in raw else defaults.disk,
        max_instances=raw.get("max_instances", defaults.max_instances),
        spot=raw.get("spot", defaults.spot),
        orphan_timeout=parse_duration(raw["orphan_timeout"]) if "orphan_timeout" in raw else defaults.orphan_timeout,
        prices=_parse_prices(raw.get("price"), types),
        max_cost=float(raw["max_cost"]) if "max_cost" in raw else None,
        max_lifetime=parse_duration(raw["max_lifetime"]) if "max_lifetime" in raw else _DEFAULT_LIFETIME_SECONDS,
        secrets=dict(raw.get("secrets") or {}),
        network=raw.get("vpc" if kind == "aws" else "network"),
        subnets=tuple(subnets),
        gcp_project=raw.get("gcp_project", ""),
        zones=tuple(raw.get("zones", ())),
    )


def find_cloud_mistakes(kind: str, raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with an entry of type `kind`, but for its keys and what all providers have."""
    types = MACHINE_TYPE_KEYS[kind]
    for key, example in (("region", REGION_FORMS[kind].hint), (types, TYPE_FORMS[kind].hint)):
        if key not in raw:
            yield Mistake((), f"expected {key}, found none", example)
    if "region" in raw:
        yield from REGION_FORMS[kind].mistake(raw["region"], ("region",))
    yield from find_machine_mistakes(kind, raw, raw.get("region"))
    if "image" in raw:
        yield from IMAGE_FORMS[kind].mistake(raw["image"], ("image",))
    yield from _find_amount_mistakes(raw)
    yield from _find_price_mistakes(kind, raw)
    yield from _find_secret_mistakes(kind, raw.get("secrets", {}))
    yield from _find_aws_mistakes(raw) if kind == "aws" else _find_gcp_mistakes(raw)


def find_machine_mistakes(kind: str, raw: Mapping[str, Any], region: Any) -> Iterator[Mistake]:
    """Yield what is wrong with the keys of an entry of type `kind` that specs may set, too: `CHOSEN_KEYS`."""
    gib, types = 1 << 30, MACHINE_TYPE_KEYS[kind]
    if types in raw:
        yield from _find_type_mistakes(kind, types, raw[types])
    sizes = f"{_MIN_DISK_BYTES // gib}GiB to 16TiB"
    yield from _find_range_mistakes(raw, "disk", parse_size, _MIN_DISK_BYTES, _MAX_DISK_BYTES, sizes)
    if "zones" in raw and "zones" in CLOUD_KEYS[kind]:
        yield from _find_list_mistakes(raw["zones"], "zones", ZONE_FORM)
        for at, zone in enumerate(raw["zones"] if isinstance(raw["zones"], list) else ()):
            if re.fullmatch(ZONE_FORM.pattern, str(zone)) and not zone.startswith(f"{region}-"):
                yield Mistake(("zones", at), f"{zone!r} is not in the region {region!r}", ZONE_FORM.hint)


def _find_type_mistakes(kind: str, key: str, raw: Any) -> Iterator[Mistake]:
    if kind == "gcp" or not isinstance(raw, list):
        yield from TYPE_FORMS[kind].mistake(raw, (key,))
    else:
        yield from _find_list_mistakes(raw, key, TYPE_FORMS[kind])


def _find_list_mistakes(raw: Any, key: str, form: TextForm) -> Iterator[Mistake]:
    if not isinstance(raw, list) or not raw:
        yield Mistake((key,), f"expected a list, each {form.what}, found {describe_value(raw)}", form.hint)
        return
    for at, each in enumerate(raw):
        yield from form.mistake(each, (key, at))
        if each in raw[:at]:
            yield Mistake((key, at), f"{each!r} is there twice", "remove one of them")


def _find_amount_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    yield from _find_range_mistakes(
        raw, "orphan_timeout", parse_duration, _MIN_ORPHAN_TIMEOUT_SECONDS, 86400.0, "2m to 1d"
    )
    yield from _find_range_mistakes(
        raw, "max_lifetime", parse_duration, MIN_LIFETIME_SECONDS, _MAX_LIFETIME_SECONDS, "10m to 366d"
    )
    if "max_instances" in raw:
        found = raw["max_instances"]
        if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= _MAX_INSTANCES:
            message = f"expected a number of machines from 1 to {_MAX_INSTANCES}, found {describe_value(found)}"
            yield Mistake(("max_instances",), message, "write how many there may be at once")
    if not isinstance(raw.get("spot", False), bool):
        yield Mistake(("spot",), f"expected true or false, found {describe_value(raw['spot'])}", "write spot: true")


def _find_range_mistakes(
    raw: Mapping[str, Any], key: str, reads: Callable[[Any], float], least: float, most: float, said: str
) -> Iterator[Mistake]:
    if key not in raw:
        return
    try:
        if not least <= reads(raw[key]) <= most:
            yield Mistake((key,), f"expected from {said}, found {describe_value(raw[key])}", "write one, with its unit")
    except MistakesError as error:
        yield from (mistake.under((key,)) for mistake in error.mistakes)


def _find_price_mistakes(kind: str, raw: Mapping[str, Any]) -> Iterator[Mistake]:
    types = MACHINE_TYPE_KEYS[kind]
    price, wanted = raw.get("price", 1), _as_tuple(raw.get(types, ()))
    example = next((each for each in wanted if isinstance(each, str)), "g5.xlarge")
    hint = f"write price: USD an hour of one machine, 1.01, or by types, {{{example}: 1.01}}"
    # A price of another type is one that specs may choose; but one that is missing here was meant.
    foreign = isinstance(price, dict) and all(each in price for each in wanted)
    for type_, each in price.items() if price and isinstance(price, dict) else [(None, price)]:
        path: tuple[str | int, ...] = ("price",) if type_ is None else ("price", type_)
        if type_ is not None and type_ not in wanted and not foreign:
            yield Mistake(
                path, f"{type_!r} is no type of this provider", suggest_word(type_, wanted, types), on_key=True
            )
        elif type_ is not None and type_ not in wanted and (wrong := [*TYPE_FORMS[kind].mistake(type_, path)]):
            yield from (replace(mistake, on_key=True) for mistake in wrong)
        elif not _is_amount(each):
            yield Mistake(path, f"expected a price, {_AMOUNT_TEXT}, found {describe_value(each)}", hint)
    if "max_cost" not in raw:
        return
    if not _is_amount(raw["max_cost"]):
        yield Mistake(
            ("max_cost",), f"expected USD, {_AMOUNT_TEXT}, found {describe_value(raw['max_cost'])}", "write 50"
        )
    unknown = [] if "price" in raw else list(wanted)
    unknown = [type_ for type_ in wanted if type_ not in price] if isinstance(price, dict) else unknown
    if unknown:
        message = f"max_cost cannot be held: nobody says what {' and '.join(map(str, unknown))} costs"
        yield Mistake(("max_cost",), message, f"{hint}, beside it", on_key=True)


def _is_amount(raw: Any) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and 0 < raw < 1e6


def _find_secret_mistakes(kind: str, raw: Any) -> Iterator[Mistake]:
    if not isinstance(raw, dict):
        hint = f"write names and places: {{WANDB_API_KEY: {'ssm:/team/wandb' if kind == 'aws' else 'wandb'}}}"
        yield Mistake(("secrets",), f"expected a mapping, found {describe_value(raw)}", hint)
        return
    for name, place in raw.items():
        path = ("secrets", name)
        if (
            not isinstance(name, str)
            or not environment_names.VARIABLE_NAME_PATTERN.match(name)
            or name.startswith("MONKEY_")
        ):
            hint = "use letters, digits and '_'; MONKEY_ is monkey's own"
            yield Mistake(path, f"{name!r} cannot name a secret", hint, on_key=True)
        elif environment_names.is_system_variable(name):
            yield Mistake(path, f"{name!r} is no secret: programs need it to run", "take it out", on_key=True)
        else:
            yield from SECRET_FORMS[kind].mistake(place, path)


def _find_aws_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    if "vpc" in raw:
        yield from VPC_FORM.mistake(raw["vpc"], ("vpc",))
    if "subnets" in raw:
        yield from _find_list_mistakes(raw["subnets"], "subnets", SUBNET_FORM)
    yield from _find_pair_mistakes(raw, "vpc", "subnets")


def _find_gcp_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    if "gcp_project" not in raw:
        yield Mistake((), "expected gcp_project, found none", PROJECT_FORM.hint)
    else:
        yield from PROJECT_FORM.mistake(raw["gcp_project"], ("gcp_project",))
    for key in ("network", "subnetwork"):
        if key in raw:
            yield from NETWORK_FORM.mistake(raw[key], (key,))
    yield from _find_pair_mistakes(raw, "network", "subnetwork")


def _find_pair_mistakes(raw: Mapping[str, Any], one: str, other: str) -> Iterator[Mistake]:
    for key, missing in ((one, other), (other, one)):
        if key in raw and missing not in raw:
            yield Mistake((key,), f"{key} needs {missing} beside it", f"write {missing}: too", on_key=True)


def _parse_prices(raw: Any, types: tuple[str, ...]) -> dict[str, float]:
    if isinstance(raw, dict):
        return {type_: float(price) for type_, price in raw.items()}
    return {} if raw is None else dict.fromkeys(types, float(raw))


def _as_tuple(raw: Any) -> tuple[Any, ...]:
    return tuple(raw) if isinstance(raw, list | tuple) else (raw,)
