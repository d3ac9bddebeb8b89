"""Names of fleets: a provider's name, and what specs set in place of its keys: `cloud..g5.xlarge..disk-200GiB`.

The name says all of it. So no other record is needed to find the fleet again, even if its spec is gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from monkey.spec.project.cloud import MACHINE_TYPE_KEYS, CloudSettings
from monkey.spec.yaml.units import parse_size

#: Between the parts of a name. No provider of monkey.yaml has it in its own.
SEPARATOR = ".."
#: Characters that a fleet's name may have in the store.
MAX_FLEET_NAME = 100
_DISK = re.compile(r"disk-([1-9][0-9]{0,8})GiB")
_ZONE = re.compile(r"zone-([a-z][a-z0-9-]*)")
_TYPE = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)*")
_GIB = 1 << 30


@dataclass(frozen=True)
class MachineChoice:
    """The machines that a spec chooses of a provider; what is empty is the provider's."""

    types: tuple[str, ...] = ()
    #: GiB of a machine's disk.
    disk: int = 0
    zones: tuple[str, ...] = ()

    def apply(self, cloud: CloudSettings) -> CloudSettings:
        """Return the provider's settings with this choice."""
        return replace(
            cloud,
            types=self.types or cloud.types,
            disk=self.disk * _GIB or cloud.disk,
            zones=self.zones or cloud.zones,
        )

    def reduce(self, cloud: CloudSettings) -> MachineChoice:
        """Return the choice without what the provider has itself."""
        return MachineChoice(
            self.types if self.types != cloud.types else (),
            self.disk if self.disk * _GIB != cloud.disk else 0,
            self.zones if self.zones != tuple(sorted(cloud.zones)) else (),
        )

    def write_keys(self, kind: str) -> dict[str, Any]:
        """Return the choice as keys of a provider of type `kind`."""
        types: Any = self.types[0] if len(self.types) == 1 else list(self.types)
        keys = {MACHINE_TYPE_KEYS[kind]: types, "disk": self.disk * _GIB, "zones": list(self.zones)}
        return {key: value for key, value in keys.items() if value}


def read_choice(raw: Mapping[str, Any]) -> MachineChoice:
    """Return the choice that keys of a provider make, which have no mistakes. A disk is rounded up to GiB."""
    types = next((raw[key] for key in MACHINE_TYPE_KEYS.values() if key in raw), ())
    disk = -(-parse_size(raw["disk"]) // _GIB) if "disk" in raw else 0
    return MachineChoice(
        (types,) if isinstance(types, str) else tuple(types), disk, tuple(sorted(raw.get("zones", ())))
    )


def spell_fleet_name(provider: str, choice: MachineChoice) -> str:
    """Return the name of the fleet of a provider with this choice: without one, it is the provider's."""
    disk = [f"disk-{choice.disk}GiB"] if choice.disk else []
    return SEPARATOR.join([provider, *choice.types, *disk, *(f"zone-{zone}" for zone in choice.zones)])


def parse_fleet_name(name: str) -> tuple[str, MachineChoice]:
    """Return the provider of a fleet, and the choice of machines that the name tells.

    Raises ValueError for a name that `spell_fleet_name` does not write.
    """
    provider, *parts = name.split(SEPARATOR)
    types, disk, zones = list[str](), 0, list[str]()
    for part in parts:
        if found := _DISK.fullmatch(part):
            disk = int(found[1])
        elif found := _ZONE.fullmatch(part):
            zones.append(found[1])
        elif _TYPE.fullmatch(part):
            types.append(part)
    choice = MachineChoice(tuple(types), disk, tuple(zones))
    if spell_fleet_name(provider, choice) != name or len(name) > MAX_FLEET_NAME:
        raise ValueError(f"{name!r} is no name of a fleet")
    return provider, choice


def find_provider_name(fleet: str) -> str:
    """Return the name of a fleet's provider in monkey.yaml."""
    return fleet.partition(SEPARATOR)[0]
