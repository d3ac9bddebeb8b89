"""What goes over Pulumi's wire, as Python's own values."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import struct_pb2
from pulumi.runtime import rpc

from tests.clouds.kind import Props
from tests.clouds.sdk import UNKNOWN


def plain(given: Any) -> Props:
    """Return a Struct as Python's own values: whole numbers are ints, what is not known yet is UNKNOWN."""
    return {key: _plain(value) for key, value in given.fields.items() if not key.startswith("__")}


def _plain(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return plain(value.struct_value)
    if kind == "list_value":
        return [_plain(each) for each in value.list_value.values]
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    if kind == "string_value":
        return UNKNOWN if value.string_value == rpc.UNKNOWN else value.string_value
    return value.bool_value if kind == "bool_value" else None


def struct(given: Props) -> struct_pb2.Struct:
    """Return Python's own values as a Struct. (The library's own `PropertyValue` writes no value that is not known.)"""
    return struct_pb2.Struct(fields={key: _value(value) for key, value in given.items() if value is not None})


def _value(value: Any) -> struct_pb2.Value:
    if value is UNKNOWN or value is None:
        return struct_pb2.Value(string_value=rpc.UNKNOWN) if value is UNKNOWN else struct_pb2.Value(null_value=0)
    if isinstance(value, dict):
        return struct_pb2.Value(struct_value=struct(value))
    if isinstance(value, list):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=list(map(_value, value))))
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    return struct_pb2.Value(string_value=value)


def decoded(settings: Props) -> Props:
    """Return a provider's settings: whatever is no text comes as JSON."""
    return {key: _decoded(value) for key, value in settings.items() if key not in ("version", "pluginDownloadURL")}


def _decoded(value: Any) -> Any:
    try:
        found = json.loads(value)
    except (TypeError, ValueError):
        return value
    return found if isinstance(found, dict | list | bool) else value
