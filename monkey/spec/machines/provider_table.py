"""The providers of a project by the names of their fleets: those of monkey.yaml, and those that specs derive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from monkey.spec.machines.fleet_name import SEPARATOR, MachineChoice, parse_fleet_name
from monkey.spec.project.cloud import CHOSEN_KEYS, find_machine_mistakes
from monkey.spec.project.provider import Provider


class ProviderTable(Mapping[str, Provider]):
    """Providers by the names of fleets; it lists those of monkey.yaml alone, and finds derived ones, too."""

    def __init__(self, named: Mapping[str, Provider]) -> None:
        """Take the providers of monkey.yaml, by their names."""
        self._named = named

    def __getitem__(self, name: str) -> Provider:
        """Return the provider of a fleet. Raises KeyError."""
        return self._named[name] if SEPARATOR not in name else self._derive(name)

    def __iter__(self) -> Iterator[str]:
        """Return the names in monkey.yaml."""
        return iter(self._named)

    def __len__(self) -> int:
        """Count the providers of monkey.yaml."""
        return len(self._named)

    def _derive(self, name: str) -> Provider:
        """Return the provider with the choice that the name tells. Others write names, too: all of it is checked."""
        try:
            provider, choice = parse_fleet_name(name)
        except ValueError:
            raise KeyError(name) from None
        found = make_derived_provider(self._named[provider], choice)
        if found is None:
            raise KeyError(name)
        return found


def make_derived_provider(provider: Provider, choice: MachineChoice) -> Provider | None:
    """Return the provider with this choice of machines; None where it has no such machines."""
    cloud, keys = provider.cloud, CHOSEN_KEYS.get(provider.type, ())
    if cloud is None:
        return None
    raw = choice.write_keys(provider.type)
    if not raw or not raw.keys() <= set(keys) or [*find_machine_mistakes(provider.type, raw, cloud.region)]:
        return None
    return replace(provider, cloud=choice.apply(cloud))
