"""Hosts as Pulumi has them: a dynamic resource each, whose provider looks, makes it so, and takes everything away."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from monkey.errors import MonkeyError
from monkey.spec.project.ssh_host import parse_ssh_host
from monkey_stacks.engine.installation import check_library
from monkey_stacks.ssh import operations
from monkey_stacks.ssh.host_resource import (
    AWAY,
    DRIFT,
    HANDED,
    INPUTS,
    PLACE,
    ProviderEnvironment,
    format_error_lines,
    make_identity,
    parse_host_plan,
    read_outputs,
    refresh_outputs,
)
from monkey_stacks.state.state_judge import strip_provider

try:
    from pulumi import CustomTimeouts, ResourceOptions
    from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult
    from pulumi.dynamic.dynamic import serialize_provider
except ModuleNotFoundError:  # an apply comes here before it looks for the program
    check_library()
    raise


def _handed() -> ProviderEnvironment:
    said = json.loads(os.environ.get(HANDED, "{}"))
    return ProviderEnvironment(**{**said, "kept": tuple(said.get("kept", ()))})


class HostProvider(ResourceProvider):
    """Looks after one host. Whatever it does may be cut off, and done again."""

    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Have an agent there."""
        return CreateResult(make_identity(props), _converged(props))

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Have the agent there that is wanted now; the old one leaves when its jobs have ended."""
        if olds.get(AWAY):
            raise ProviderError(olds[DRIFT])  # it was tried a moment ago
        return UpdateResult(_converged(news))

    def diff(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Say what is another. An agent in another place would fill the machine twice: the old one goes first."""
        changed = [name for name in INPUTS if olds.get(name) != news.get(name)]
        return DiffResult(bool(changed), [name for name in changed if name in PLACE], delete_before_replace=True)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Look whether it is as it was left; a host that cannot be looked at may be anything."""
        plain = strip_provider(props)
        return ReadResult(id_, {**plain, **refresh_outputs(plain, _handed())})

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Take everything away."""
        with _plainly():
            operations.remove_fleet(parse_ssh_host(props["host"]), parse_host_plan(props, ProviderEnvironment()))


class HostResource(Resource, module="monkey", name="Host"):
    """A host with an agent."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        """`inputs`: what `make_host_inputs` gave."""
        limits = CustomTimeouts(create="30m", update="30m", delete="30m")
        super().__init__(HostProvider(), inputs["host"], dict(inputs), ResourceOptions(custom_timeouts=limits))


def make_program(hosts: Iterable[Mapping[str, Any]]) -> Callable[[], None]:
    """Return the program that registers these hosts, each by its inputs."""
    registered = list(hosts)

    def register() -> None:
        for inputs in registered:
            HostResource(inputs)

    return register


def serialize_host_provider() -> str:
    """Return the provider as Pulumi's state has it."""
    pickled: str = serialize_provider(HostProvider())
    return pickled


def _converged(props: dict[str, Any]) -> dict[str, Any]:
    with _plainly():
        seen = operations.converge_host(parse_ssh_host(props["host"]), parse_host_plan(props, _handed()))
    newest = seen.living
    bundle = newest.bundle if newest is not None else ""
    return {**strip_provider(props), **read_outputs(seen), "bundle": bundle, DRIFT: "", AWAY: False}


@contextmanager
def _plainly() -> Iterator[None]:
    """Tell Pulumi of an error with its hint, which is not part of an exception's text."""
    try:
        yield
    except MonkeyError as exc:
        raise ProviderError(format_error_lines(exc)) from None


class ProviderError(Exception):
    """An error of ours, in full words."""
