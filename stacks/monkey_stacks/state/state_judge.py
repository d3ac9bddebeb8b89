"""The judge of state documents: what Pulumi and plans read of a state is made here, from what is known to be harmless.

A state is written by Pulumi and read from the store, where others may write. It can name plugins and where to fetch
them, a service that keeps its secrets, files of this machine, and pickled code. Go's JSON also reads fields that differ
in case. So nothing is passed on as it was: unknown fields are dropped, and what only another program writes is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.errors import CorruptObject
from monkey_stacks import provider_types
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.engine.state_bucket import LARGEST
from monkey_stacks.state.state_rules import StateRules

#: The pickled provider of a dynamic resource: never passed on.
PROVIDER = "__provider"
#: Begin Pulumi's types of its own resources, and of its providers.
PULUMI, PROVIDERS = "pulumi:", "pulumi:providers:"
STACK = "pulumi:pulumi:Stack"
#: Ends the names of resources that a replacement left. They keep it until they are gone, after any interruptions.
LEFT = re.compile(r"~left\d+\Z")
#: Versions of Pulumi's layout of a state. The later one only says which newer fields it has.
_VERSIONS = (3, 4)
#: How deep values may lie in each other: AWS's deepest are 10 deep.
_DEEPEST = 64
#: Characters of a hostile text that an error shows.
_SHOWN = 80
#: Marks a value that is none of JSON's: a secret, a file, an archive, another resource. Only secrets may be.
_MARK, _SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
_OPERATIONS = ("creating", "updating", "deleting", "reading")
_SEMVER = re.compile(r"v?\d{1,9}\.\d{1,9}\.\d{1,9}(?:[-+][0-9A-Za-z.+-]{1,60})?")
_HINT = (
    "another program may have changed that object: do not run Pulumi on it by hand; find out who wrote it, "
    "and put an older version in its place"
)
_TORN = "bring back an older version of it, or remove all below {} in the store: apply then finds what is there"


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


#: Fields of a resource that are passed on. Left out are those that keep Pulumi from deleting a resource (protect,
#: external, retainOnDelete, deletedWith), that give it other names (aliases), and that only people read (stackTrace).
_FIELDS: Mapping[str, type | Callable[[Any], bool]] = {
    **dict.fromkeys(("urn", "type", "id", "parent", "provider", "created", "modified"), str),
    **dict.fromkeys(("custom", "delete", "pendingReplacement", "refreshBeforeUpdate"), bool),
    **dict.fromkeys(("inputs", "outputs"), dict),
    **dict.fromkeys(("dependencies", "initErrors", "additionalSecretOutputs", "ignoreChanges"), _is_texts),
    "propertyDependencies": lambda value: (
        isinstance(value, dict) and all(each is None or _is_texts(each) for each in value.values())
    ),
    "customTimeouts": lambda value: (
        isinstance(value, dict) and all(type(each) in (int, float) for each in value.values())
    ),
}


@dataclass(frozen=True)
class StatePlace:
    """Whose state it is, and where."""

    project: str
    stack: str
    #: The state's key in the store, and the beginning of all keys of this stack.
    key: str
    prefix: str


class _Refused(Exception):
    """The document is well-formed, and another program wrote it."""


def judge_state(data: bytes, place: StatePlace, rules: StateRules) -> dict[str, Any]:
    """Return the document that Pulumi may read, made from the bytes of a state.

    Raises CorruptObject, and FleetError for the machines of another type of provider.
    It has no pickled provider, and no field, type, provider or setting that `rules` do not permit.
    """
    try:
        return _Judge(place, rules).remake(_parse(data))
    except _Refused as exc:
        raise CorruptObject(place.key, f"{exc}. Nothing of it was run", _HINT) from None
    except (ValueError, RecursionError) as exc:
        why = exc if isinstance(exc, ValueError) else "it is too deep"
        raise CorruptObject(place.key, f"not a state of Pulumi's: {why}", _TORN.format(place.prefix)) from exc


def read_resource(raw: Mapping[str, Any], *, pending: bool = False) -> StateResource:
    """Return a judged resource as we have it."""
    cut = pending or bool(raw.get("initErrors"))
    inputs, outputs = strip_provider(raw.get("inputs") or {}), strip_provider(raw.get("outputs") or {})
    return StateResource(raw["type"], parse_urn_name(raw["urn"]), raw.get("id", ""), inputs, outputs, cut)


def strip_provider(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties without the pickled provider."""
    return {name: value for name, value in properties.items() if name != PROVIDER}


def parse_urn_name(urn: str) -> str:
    """Return the name that a program gave to the resource with this URN; an IPv6 address has colons of its own."""
    return LEFT.sub("", urn.split("::", 3)[-1])


def _parse(data: bytes) -> Any:
    if len(data) > LARGEST:
        raise ValueError(f"it has {len(data):,} bytes, and a state has at most {LARGEST:,}")

    def refuse_constant(text: str) -> None:
        raise ValueError(f"{text} is no number")

    return json.loads(data, parse_constant=refuse_constant)


def _need(found: bool, what: str) -> None:
    if not found:
        raise ValueError(what)


def _show(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"


class _Judge:
    """Judges one document. What is ill-formed raises ValueError, what another program wrote raises _Refused."""

    def __init__(self, place: StatePlace, rules: StateRules) -> None:
        self._place, self._rules = place, rules
        self._root = self._spell(STACK, f"{place.project}-{place.stack}")
        #: References to the providers that the document has, to their packages.
        self._providers: dict[str, str] = {}

    def remake(self, body: Any) -> dict[str, Any]:
        """Return the document, made again from its judged parts."""
        _need(isinstance(body, dict) and isinstance(body.get("checkpoint"), dict), "it has no checkpoint")
        version = body.get("version")
        if type(version) is not int or version not in _VERSIONS:
            raise ValueError(f"expected a state of version 3 or 4, found {_show(version)}: update monkey and Pulumi")
        latest = body["checkpoint"].get("latest")
        _need(latest is None or isinstance(latest, dict), "its deployment is no table")
        features = body.get("features")
        _need(features is None or _is_texts(features), "its features are no texts")
        made = {"version": version, **({} if features is None else {"features": features})}
        checkpoint = {"stack": f"organization/{self._place.project}/{self._place.stack}"}
        made["checkpoint"] = checkpoint if latest is None else {**checkpoint, "latest": self._remake_latest(latest)}
        return made

    def _remake_latest(self, latest: Mapping[str, Any]) -> dict[str, Any]:
        raws, operations = latest.get("resources") or [], latest.get("pending_operations") or []
        _need(isinstance(raws, list) and isinstance(operations, list), "its resources are no list")
        made: dict[str, Any] = {"manifest": self._remake_manifest(latest.get("manifest"))}
        if (keeper := latest.get("secrets_providers")) is not None:
            made["secrets_providers"] = self._remake_keeper(keeper)
        self._find_providers(raws)
        types = [raw["type"] for raw in raws if isinstance(raw.get("type"), str)]
        provider_types.check_provider_type(types, self._rules.kind, self._place.stack)
        made["resources"] = [self._remake_resource(raw) for raw in raws]
        if operations:
            made["pending_operations"] = [self._remake_operation(each) for each in operations]
        made["metadata"] = {}
        return made

    def _remake_manifest(self, manifest: Any) -> dict[str, str]:
        """Keep of the manifest what says which Pulumi wrote it: its plugins have paths."""
        _need(isinstance(manifest, dict), "it has no manifest")
        kept = {name: manifest.get(name, "") for name in ("time", "magic", "version")}
        _need(all(isinstance(each, str) for each in kept.values()), "its manifest has other values than texts")
        return kept

    def _remake_keeper(self, keeper: Any) -> dict[str, Any]:
        """Permit no keeper of secrets but an empty passphrase: others are asked over the network, with our keys."""
        _need(isinstance(keeper, dict), "its secrets provider is no table")
        if keeper.get("type") != "passphrase":
            raise _Refused(
                f"has its secrets kept by {_show(keeper.get('type'))}, and monkey's are kept by a passphrase"
            )
        state = keeper.get("state")
        _need(isinstance(state, dict) and isinstance(state.get("salt"), str), "its secrets provider has no salt")
        return {"type": "passphrase", "state": {"salt": state["salt"]}}

    def _remake_operation(self, operation: Any) -> dict[str, Any]:
        _need(isinstance(operation, dict), "a pending operation is no table")
        kind = operation.get("type")
        _need(kind in _OPERATIONS, f"a pending operation is {_show(kind)}")
        return {"resource": self._remake_resource(operation.get("resource"), pending=True), "type": kind}

    def _find_providers(self, raws: list[Any]) -> None:
        for raw in raws:
            _need(isinstance(raw, dict), "a resource is no table")
            type_ = raw.get("type")
            if isinstance(type_, str) and type_.startswith(PROVIDERS):
                self._providers[f"{raw.get('urn')}::{raw.get('id')}"] = type_.removeprefix(PROVIDERS)

    def _remake_resource(self, raw: Any, *, pending: bool = False) -> dict[str, Any]:
        _need(isinstance(raw, dict), "a resource is no table")
        made = {name: raw[name] for name in _FIELDS if raw.get(name) is not None}
        for name, value in made.items():
            form = _FIELDS[name]
            fits = isinstance(value, form) if isinstance(form, type) else form(value)
            _need(fits, f"{name} of a resource is {_show(value)}")
        type_ = made.get("type", "")
        name = self._judge_name(made)
        if made.get("parent", self._root) not in ("", self._root):
            raise _Refused(f"has {name!r} within another resource: monkey makes none so")
        if type_ == STACK:
            return self._remake_root(made, name)
        _need(made.get("custom") is True, f"{name!r} is no resource of a provider")
        _need(bool(made.get("id")) or pending, f"{name!r} has no id")
        if type_.startswith(PROVIDERS):
            return self._remake_provider(made, name, type_.removeprefix(PROVIDERS))
        return self._judge_resource(made, name, type_)

    def _judge_name(self, made: Mapping[str, Any]) -> str:
        """Return the resource's name: Pulumi takes the type from the URN, so both must say the same."""
        urn, type_ = made.get("urn", ""), made.get("type", "")
        name = str(urn).removeprefix(self._spell(type_, ""))
        if not name or not type_ or urn != self._spell(type_, name) or not name.isprintable():
            raise _Refused(
                f"has a resource of type {_show(type_)} under the URN {_show(urn)}, which monkey does not make"
            )
        return name

    def _spell(self, type_: str, name: str) -> str:
        return f"urn:pulumi:{self._place.stack}::{self._place.project}::{type_}::{name}"

    def _remake_root(self, made: dict[str, Any], name: str) -> dict[str, Any]:
        if made["urn"] != self._root or made.get("custom"):
            raise _Refused(f"names a stack {_show(name)}, and this is the state of {self._place.stack!r}")
        return {key: value for key, value in made.items() if key not in ("inputs", "outputs", "provider")}

    def _remake_provider(self, made: dict[str, Any], name: str, package: str) -> dict[str, Any]:
        if package not in self._rules.settings:
            raise _Refused(f"names a provider of Pulumi's that monkey does not use here: {_show(package)}")
        if made.get("provider"):
            raise _Refused(f"has the provider {_show(package)} made by another provider")
        for part in ("inputs", "outputs"):
            if part in made:
                made[part] = self._remake_settings(made[part], package)
        return made

    def _remake_settings(self, found: Mapping[str, Any], package: str) -> dict[str, Any]:
        """Return the settings that our programs give; others that say nothing are dropped."""
        known, kept = self._rules.settings[package], dict[str, Any]()
        for name, value in found.items():
            version = name == "version" and isinstance(value, str) and _SEMVER.fullmatch(value)
            if version or (name in known and isinstance(value, str | bool)):
                kept[name] = value
            elif value not in (None, "", True, False, "true", "false", [], {}):
                raise _Refused(
                    f"gives Pulumi's provider {package!r} a setting that monkey does not: "
                    f"{_show(name)} is {_show(value)}"
                )
        return kept

    def _judge_resource(self, made: dict[str, Any], name: str, type_: str) -> dict[str, Any]:
        if type_ not in self._rules.types:
            raise _Refused(f"names {_show(name)} of type {_show(type_)}, which monkey does not make here")
        if self._providers.get(made.get("provider", "")) != type_.partition(":")[0]:
            raise _Refused(
                f"has {_show(name)} made by {_show(made.get('provider', ''))}, which is no provider of its type"
            )
        for part in ("inputs", "outputs"):
            if part in made:
                made[part] = strip_provider(made[part])
                self._judge_values(made[part], name)
        inspect = self._rules.inspect
        if inspect and (wrong := inspect(read_resource(made), self._place.project, self._place.stack)):
            raise _Refused(f"names {_show(name)}, which {wrong}")
        return made

    def _judge_values(self, properties: Mapping[str, Any], name: str) -> None:
        for value in _walk(properties):
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name!r} has a number that is none")
            if isinstance(value, dict) and _MARK in value:
                if value.keys() != {_MARK, "ciphertext"} or value[_MARK] != _SECRET or value is properties:
                    raise _Refused(f"has in {_show(name)} a file, an archive or a reference, and monkey writes none")
                _need(isinstance(value["ciphertext"], str), f"{name!r} has a secret that is no text")


def _walk(top: Any) -> Iterator[Any]:
    """Yield a value and all within it; raises ValueError for one that is too deep."""
    left = [(top, 0)]
    while left:
        value, depth = left.pop()
        if depth > _DEEPEST:
            raise ValueError(f"values lie more than {_DEEPEST} deep in each other")
        yield value
        within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(each, depth + 1) for each in within]
