"""Hosts as Pulumi has them: a dynamic resource each, whose provider looks, makes it so, and takes everything away.

The state names `HostProvider` by this module: moving it makes existing states unreadable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from monkey.errors import MonkeyError
from monkey.spec.project.ssh_host import SshHost, parse_ssh_host
from monkey_stacks.engine.installation import check_library
from monkey_stacks.ssh import operations
from monkey_stacks.ssh.host_resource import AWAY, DRIFT, HANDED, PLACE, TROUBLE, ProviderEnvironment, make_identity
from monkey_stacks.ssh.host_state import HostPlan, ObservedHost, list_differences
from monkey_stacks.ssh.remote.keep_alive import DETACHED

try:
    from pulumi import CustomTimeouts, ResourceOptions
    from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult
except ModuleNotFoundError:  # a plan comes here before it looks for the program
    check_library()
    raise

_INPUTS = (*PLACE, "max_slots", "idle_timeout", "cache_size", "gpus", "agent", DRIFT)


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
        changed = [name for name in _INPUTS if olds.get(name) != news.get(name)]
        return DiffResult(bool(changed), [name for name in changed if name in PLACE], delete_before_replace=True)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Look whether it is as it was left; a host that cannot be looked at may be anything."""
        handed, plain = _handed(), _plain(props)
        return ReadResult(id_, {**plain, **(handed.seen.get(plain["host"]) or refresh_outputs(plain, handed))})

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        """Take everything away."""
        with _plainly():
            operations.remove_fleet(_host(props), parse_host_plan(_plain(props), ProviderEnvironment()))


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


def make_host_inputs(host: str, wanted: HostPlan, agent: str) -> dict[str, Any]:
    """Return the inputs of one host; `agent`: what tells an agent's code from others'."""
    said = {
        "host": host,
        "workdir": wanted.workdir,
        "store": wanted.store,
        "project": wanted.project,
        "fleet": wanted.fleet,
        "max_slots": wanted.max_slots,
        "idle_timeout": wanted.idle_timeout,
        "cache_size": wanted.cache_size,
        "gpus": wanted.gpus if isinstance(wanted.gpus, str) else list(wanted.gpus),
        "agent": agent,
        DRIFT: "",
    }
    return {name: value for name, value in said.items() if value is not None}


def parse_host_plan(props: Mapping[str, Any], handed: ProviderEnvironment) -> HostPlan:
    """Return what inputs (or outputs) ask of a host; Pulumi's numbers are all floats."""
    slots, size, gpus = props.get("max_slots"), props.get("cache_size"), props.get("gpus", "auto")
    return HostPlan(
        store=props["store"],
        project=props["project"],
        fleet=props["fleet"],
        workdir=props["workdir"],
        max_slots=None if slots is None else int(slots),
        idle_timeout=float(props["idle_timeout"]),
        cache_size=None if size is None else int(size),
        gpus=gpus if isinstance(gpus, str) else tuple(map(int, gpus)),
        secrets=handed.secrets,
        kept=handed.kept,
        credentials=handed.credentials,
    )


def refresh_outputs(props: Mapping[str, Any], handed: ProviderEnvironment) -> dict[str, Any]:
    """Return the outputs of a host as they are now: with the drift, or why it cannot be looked at."""
    wanted = parse_host_plan(props, handed)
    try:
        seen = operations.observe_host(_host(props), wanted)
    except MonkeyError as exc:
        return {**props, DRIFT: format_error_lines(exc), AWAY: True}
    drift = list_differences(seen, wanted, props.get("bundle", ""), idle=handed.idle)
    said = {DRIFT: "; ".join(drift), AWAY: False, TROUBLE: ""}
    try:
        operations.check_host_fits(_host(props), seen, wanted)
    except MonkeyError as exc:
        said[TROUBLE] = format_error_lines(exc)
    return {**props, **_outputs(seen), **said}


def preview_outputs(host: str, wanted: HostPlan) -> dict[str, Any]:
    """Return what the outputs of a host would be that has no agent yet, or why it cannot have one."""
    try:
        return _outputs(operations.inspect_host(parse_ssh_host(host), wanted))
    except MonkeyError as exc:
        return {DRIFT: format_error_lines(exc), AWAY: True}


def format_error_lines(exc: MonkeyError) -> str:
    """Return an error and its hint as lines."""
    return f"{exc.message}\nhint: {exc.hint}" if exc.hint else exc.message


def _converged(props: dict[str, Any]) -> dict[str, Any]:
    with _plainly():
        seen = operations.converge_host(_host(props), parse_host_plan(props, _handed()))
    newest = seen.living
    bundle = newest.bundle if newest is not None else ""
    return {**_plain(props), **_outputs(seen), "bundle": bundle, DRIFT: "", AWAY: False}


def _outputs(seen: ObservedHost) -> dict[str, Any]:
    """Return what is worth knowing of a host without asking it again."""
    return {"machine": seen.name, "where": seen.host, "user": seen.user, "about": describe_keep_alive(seen)}


def describe_keep_alive(seen: ObservedHost) -> str:
    """Say how an agent is kept alive there."""
    keeping = seen.keeping
    if keeping == DETACHED:
        return "detached: a reboot ends it (no lingering, no crontab)"
    return f"kept alive by {keeping}, begun again after a reboot"


def _host(props: Mapping[str, Any]) -> SshHost:
    return parse_ssh_host(props["host"])


def _plain(props: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in props.items() if name != "__provider"}


@contextmanager
def _plainly() -> Iterator[None]:
    """Tell Pulumi of an error with its hint, which is not part of an exception's text."""
    try:
        yield
    except MonkeyError as exc:
        raise ProviderError(format_error_lines(exc)) from None


class ProviderError(Exception):
    """An error of ours, in full words."""
