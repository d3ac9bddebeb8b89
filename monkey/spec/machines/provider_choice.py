"""`provider:` of a spec: the providers that run its jobs, and keys of theirs that the spec sets in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monkey.spec.machines.fleet_name import (
    MAX_FLEET_NAME,
    SEPARATOR,
    MachineChoice,
    find_provider_name,
    read_choice,
    spell_fleet_name,
)
from monkey.spec.project.cloud import CHOSEN_KEYS, CLOUD_KEYS, MACHINE_TYPE_KEYS, find_machine_mistakes
from monkey.spec.project.provider import MADE_BY_INIT, STORE_NAME_PATTERN, Provider
from monkey.spec.yaml.mistakes import Mistake, MistakesError, NodePath, describe_value, find_nearest_word, suggest_word

_EXAMPLE = "write provider: local, or {name: cloud, disk: 200GiB}"
_ONE_SCHEMA: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "description": "A provider with other machines: these keys take the place of its own.",
            "properties": {
                "name": {"type": "string", "description": "The provider's name."},
                "instance_type": {"type": ["string", "array"], "items": {"type": "string"}, "description": "Of `aws`."},
                "machine_type": {"type": "string", "description": "Of `gcp`."},
                "disk": {"type": ["string", "integer"], "examples": ["200GiB"]},
                "zones": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Of `gcp`."},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    ]
}
#: The JSON schema of `provider:`.
PROVIDER_SCHEMA: dict[str, Any] = {
    "anyOf": [*_ONE_SCHEMA["anyOf"], {"type": "array", "items": _ONE_SCHEMA, "minItems": 1, "uniqueItems": True}],
    "default": "local",
    "description": "A provider of monkey.yaml, or several: agents of each take from the same queue.",
}


@dataclass(frozen=True)
class ProviderChoice:
    """A provider that a spec names, with the keys that the spec sets in place of the provider's."""

    name: str
    #: Keys of the provider, with their values as written.
    keys: Mapping[str, Any] = field(default_factory=dict)
    #: Where it stands in the spec.
    path: NodePath = ("provider",)

    def name_fleet(self, known: Mapping[str, Provider] | None) -> str:
        """Return the name of the fleet; `known`: the project's providers. The choice has no mistakes."""
        choice, of = read_choice(self.keys), (known or {}).get(self.name)
        return spell_fleet_name(self.name, choice.reduce(of.cloud) if of is not None and of.cloud else choice)


def parse_provider_choices(raw: Any) -> list[ProviderChoice]:
    """Return what a spec's `provider:` names. Raises MistakesError."""
    items = raw if isinstance(raw, list) else [raw]
    mistakes, found = list[Mistake](), list[ProviderChoice]()
    for at, item in enumerate(items):
        path: NodePath = (at,) if isinstance(raw, list) else ()
        try:
            found.append(_parse_item(item, path))
        except MistakesError as error:
            mistakes += error.mistakes
    if not items:
        mistakes = [Mistake((), "expected a provider's name or a list of them, found an empty list", _EXAMPLE)]
    if mistakes:
        raise MistakesError(mistakes)
    return found


def _parse_item(raw: Any, path: NodePath) -> ProviderChoice:
    keys = {key: value for key, value in raw.items() if key != "name"} if isinstance(raw, dict) else {}
    name = raw.get("name") if isinstance(raw, dict) else raw
    if isinstance(raw, dict) and name is None:
        raise MistakesError([Mistake(path, "expected the name of a provider, found none", _EXAMPLE)])
    if not isinstance(name, str) or not STORE_NAME_PATTERN.match(name):
        message = f"expected a provider's name or a list of them, found {describe_value(name)}"
        raise MistakesError([Mistake(path, message, _EXAMPLE)])
    return ProviderChoice(name, keys, ("provider", *path))


def find_choice_mistakes(
    choices: Sequence[ProviderChoice], known: Mapping[str, Provider] | None, *, named: bool
) -> Iterator[Mistake]:
    """Yield what is wrong with a spec's providers; `named`: the spec names them, and takes no default."""
    fleets = set[str]()
    for each in choices:
        wrong = [*_find_unknown(each, known, named=named)]
        of = (known or {}).get(each.name)
        if of is not None and not wrong:
            wrong = [mistake.under(each.path) for mistake in _find_key_mistakes(each, of)]
        yield from wrong
        if wrong or (known is None and each.keys):
            continue
        fleet = each.name_fleet(known)
        if fleet in fleets:
            yield Mistake(each.path, f"provider {fleet!r} is listed twice", "name each once")
        fleets.add(fleet)


def _find_unknown(choice: ProviderChoice, known: Mapping[str, Provider] | None, *, named: bool) -> Iterator[Mistake]:
    if known is None or choice.name in (there := sorted(known)):
        return
    name = choice.name
    if not named:
        told = f"the spec names no provider, and the default {name!r} is not in monkey.yaml"
        yield Mistake((), told, "write " + " or ".join(f"`provider: {each}`" for each in there))
        return
    own, hint = find_provider_name(name), suggest_word(name, there, "providers")
    if name in MADE_BY_INIT:
        hint = f"`monkey init --provider {name}` adds one; {hint}"
    if SEPARATOR in name and own in there:
        hint = f"name its provider, with keys in place of its own: {{name: {own}, disk: 200GiB}}"
    yield Mistake(choice.path, f"unknown provider {name!r}", hint)


def _find_key_mistakes(choice: ProviderChoice, of: Provider) -> Iterator[Mistake]:
    """Yield what is wrong with keys that a spec sets of a provider, as seen from the choice."""
    allowed, cloud = CHOSEN_KEYS.get(of.type, ()), of.cloud
    for key in choice.keys:
        if key not in allowed:
            hint = "make another provider in monkey.yaml, and name that one: only rented machines can be chosen here"
            if allowed and find_nearest_word(str(key), allowed) and key not in CLOUD_KEYS[of.type]:
                hint = suggest_word(str(key), allowed, "keys")
            elif allowed:
                hint = f"a spec may set {' and '.join(allowed)}; set the others in monkey.yaml"
            message = f"a spec cannot set {key!r} of provider {choice.name!r}, which is of type {of.type}"
            yield Mistake((key,), message, hint, on_key=True)
    if cloud is None or not choice.keys:
        return
    raw = {key: value for key, value in choice.keys.items() if key in allowed}
    if wrong := [*find_machine_mistakes(of.type, raw, cloud.region)]:
        yield from wrong
        return
    chosen = read_choice(raw)
    yield from _find_unpriced(chosen, of, choice.name)
    if len(fleet := spell_fleet_name(choice.name, chosen)) > MAX_FLEET_NAME:
        message = f"expected a fleet's name of {MAX_FLEET_NAME} characters or fewer, found {fleet!r}"
        yield Mistake((), message, "list fewer types or zones, or give the provider a shorter name")


def _find_unpriced(chosen: MachineChoice, of: Provider, name: str) -> Iterator[Mistake]:
    """Yield that a limit of the provider could not be held, as the spec's types have no price."""
    unknown = [type_ for type_ in chosen.types if type_ not in of.rented.prices]
    if of.rented.max_cost is not None and unknown:
        message = f"max_cost of provider {name!r} cannot be held: nobody says what {' and '.join(unknown)} costs"
        hint = f"write the price at {name} in monkey.yaml, USD an hour of one machine: price: {{{unknown[0]}: 1.01}}"
        others = [type_ for type_ in of.rented.prices if type_ not in of.rented.types]  # one of them may be a slip
        hint += f"; it has prices of {', '.join(others)}" if others else ""
        yield Mistake((MACHINE_TYPE_KEYS[of.type],), message, hint)
