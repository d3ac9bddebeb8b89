"""Hosts whose agent is to be in another place: moved only where the new place will do, left as they were elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.ssh.host_resource import AWAY, DRIFT, PLACE, TROUBLE


def find_moving(known: Mapping[str, StateResource], inputs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the hosts on which an agent is to be set up in another place than it is; `known`: the state, by hosts."""
    return [each["host"] for each in inputs if each["host"] in known and is_moved(known[each["host"]].inputs, each)]


def is_moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Say whether inputs ask for another place than others did."""
    return any(old.get(name) != new.get(name) for name in PLACE)


def find_hindered(looked: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return why hosts cannot be moved, by hosts; `looked`: their outputs, as `hosts.looked` found the new places."""
    return {host: str(outputs[DRIFT]) for host, outputs in looked.items() if outputs.get(AWAY)}


def keep_hindered(
    inputs: Sequence[Mapping[str, Any]], known: Mapping[str, StateResource], hindered: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return the inputs of all hosts, those of the hindered ones as they are: what works there continues.

    Pulumi takes the old away before it asks whether the new can be.
    """
    return [known[each["host"]].inputs if each["host"] in hindered else each for each in inputs]


def add_move_trouble(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return a host's outputs where it is (`old`), with what keeps it from the place where it is to be (`new`)."""
    return {**old, TROUBLE: new[DRIFT] if new.get(AWAY) else ""}
