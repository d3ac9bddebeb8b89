"""What the installed pulumi_aws or pulumi_gcp defines: the measure of everything that a program registers.

The real plugins refuse what their schemas do not know; the SDK's classes are made from the same schemas.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pulumi import _types as pulumi_types

#: What is not known before it is made, in a preview.
UNKNOWN = object()
_PLAIN: dict[type, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


@dataclass(frozen=True)
class Wrong:
    """Something that no class defines."""

    path: str
    why: str


class Sdk:
    """The classes of one SDK."""

    def __init__(self, package: str) -> None:
        """Take `pulumi_aws` or `pulumi_gcp`."""
        self.package = package
        self.module = importlib.import_module(package)
        listed = re.search(r'resource_modules="""(.*?)"""', inspect.getsource(self.module), re.DOTALL)
        assert listed is not None, f"{package} registers its resources in another way than it did"
        self._where = {
            token: (each["fqn"], name) for each in json.loads(listed[1]) for token, name in each["classes"].items()
        }

    @property
    def version(self) -> str:
        """The version of the plugin that it belongs to."""
        return str(json.loads((importlib.resources.files(self.package) / "pulumi-plugin.json").read_text())["version"])

    @cache  # noqa: B019 (one for the life of a process)
    def arguments(self, token: str) -> type:
        """Return the class of a resource's arguments. Raises KeyError for a token that the SDK does not have."""
        if token.startswith("pulumi:providers:"):
            return self.module.ProviderArgs
        module, name = self._where[token]
        return getattr(importlib.import_module(module), f"{name}Args")

    @cache  # noqa: B019
    def state(self, token: str) -> type:
        """Return the class of all that is known of a resource."""
        arguments = self.arguments(token)
        return sys.modules[arguments.__module__].__dict__[f"_{arguments.__name__[:-4]}State"]

    def names(self, token: str) -> frozenset[str]:
        """Return the names of a resource's arguments."""
        return frozenset(pulumi_types.input_type_py_to_pulumi_names(self.arguments(token)).values())

    def outputs(self, token: str) -> frozenset[str]:
        """Return the names of all properties of a resource."""
        state = frozenset(pulumi_types.input_type_py_to_pulumi_names(self.state(token)).values())
        return state | self.names(token)

    def refuse(self, token: str, given: Mapping[str, Any]) -> list[Wrong]:
        """Return what is wrong with the arguments of a resource."""
        return list(_object(self.arguments(token), given, ""))

    def refuse_call(self, token: str, given: Mapping[str, Any]) -> list[Wrong]:
        """Return what is wrong with the arguments of a function ("aws:ec2/getAmi:getAmi")."""
        _, where, name = token.split(":")
        place = where.rpartition("/")[0]
        module = importlib.import_module(f"{self.package}.{place}" if place != "index" else self.package)
        function = getattr(module, _snake(name))
        known = [_camel(each) for each in inspect.signature(function).parameters if each != "opts"]
        return [Wrong(key, _unknown(key, known)) for key in given if key not in known]


def _object(cls: type, given: Mapping[str, Any], path: str) -> Iterator[Wrong]:
    names = pulumi_types.input_type_py_to_pulumi_names(cls)
    kinds = pulumi_types.input_type_types(cls)
    for key, value in given.items():
        if key not in names.values():
            yield Wrong(f"{path}{key}", _unknown(key, names.values()))
        else:
            yield from _value(kinds[key], value, f"{path}{key}")
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.default is parameter.empty and names.get(parameter.name) not in given:
            yield Wrong(f"{path}{names[parameter.name]}", "Missing required argument")


def _value(kind: Any, value: Any, path: str) -> Iterator[Wrong]:
    """Look at one value; of a union, the first kind that fits is right."""
    if value is UNKNOWN or value is None:
        return
    kinds = list(_alternatives(kind))
    found = [list(_one(each, value, path)) for each in kinds]
    if all(found):
        yield from min(found, key=len)


def _one(kind: Any, value: Any, path: str) -> Iterator[Wrong]:
    origin = typing.get_origin(kind)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            yield Wrong(path, f"expected a map, got {value!r}")
            return
        for key, each in value.items():
            yield from _value(typing.get_args(kind)[1], each, f"{path}.{key}")
    elif origin is not None and issubclass(origin, Sequence):
        if not isinstance(value, list):
            yield Wrong(path, f"expected a list, got {value!r}")
            return
        for at, each in enumerate(value):
            yield from _value(typing.get_args(kind)[0], each, f"{path}[{at}]")
    elif kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]) or (isinstance(value, bool) and kind is not bool):
            yield Wrong(path, f"expected {kind.__name__}, got {value!r}")
    elif issubclass(kind, enum.Enum):
        yield from _one(str if issubclass(kind, str) else float, value, path)
    elif pulumi_types.is_input_type(kind):
        if isinstance(value, Mapping):
            yield from _object(kind, value, f"{path}.")
        else:
            yield Wrong(path, f"expected an object, got {value!r}")
    else:
        raise TypeError(f"{path}: the SDK has a type that is not understood here: {kind!r}")


def _alternatives(kind: Any) -> Iterator[Any]:
    """Yield the plain kinds of what may be an Input of a union."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        for each in typing.get_args(kind):
            origin = typing.get_origin(each)
            if each is not type(None) and getattr(origin, "__name__", "") not in ("Awaitable", "Output"):
                yield from _alternatives(each)
    else:
        yield kind


def _unknown(key: str, known: typing.Iterable[str]) -> str:
    """Say it as the real plugins do."""
    return f"An argument named {key!r} is not expected here; there are {', '.join(sorted(known))}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
