"""The settings that machines boot with, and the mark of their inputs: the same for all clouds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Protocol

from monkey.signing.machine_list import hash_signers
from monkey.spec.job.counted_resources import spell_counts
from monkey.spec.job.lease_length import LEASE
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.mounts import list_mount_steps
from monkey.spec.project.provider import Provider
from monkey_stacks.boot import MachineSettings
from monkey_stacks.bundle.bundle import Bundle

#: Characters of the hash of a machine's inputs.
HASH = 8


class NamedStack(Protocol):
    """A fleet's stack, whatever the names of its resources."""

    @property
    def project(self) -> str: ...

    @property
    def fleet(self) -> str: ...


def make_settings(
    provider: Provider, stack: NamedStack, store_url: str, bundle: Bundle, group: str, signers: str
) -> MachineSettings:
    """Return a machine's settings: its store, the bundle, its group as its cloud addresses it, its signers."""
    cloud = provider.rented
    return MachineSettings(
        cloud=provider.type,
        store=store_url,
        project=stack.project,
        fleet=stack.fleet,
        bundle=bundle.sha256,
        parts=len(bundle.parts),
        signers=hash_signers(signers),
        group=group,
        region=cloud.region,
        gcp_project=cloud.gcp_project,
        idle_timeout=provider.idle_timeout,
        max_slots=provider.max_slots,
        cache_size=provider.cache_size,
        runtime=provider.runtime,
        resources=spell_counts(provider.resources),
        lease=provider.lease if provider.lease != LEASE else 0.0,
        mounts=list_mount_steps(provider.mounts),
        orphan_timeout=cloud.orphan_timeout,
        secrets=dict(cloud.secrets),
    )


def hash_configuration(cloud: CloudSettings, told: MachineSettings) -> str:
    """Return a hash of what monkey.yaml says of machines: of their inputs, what does not change by itself.

    It leaves out the image's id, the agent's code and the signers, which differ from one applier, or day, to the next.
    """
    return hash_machine_inputs(cloud, "", replace(told, signers=""), cloud.zones)


def hash_machine_inputs(cloud: CloudSettings, image: str, told: MachineSettings, zones: Sequence[str] = ()) -> str:
    """Return the mark of machines with these inputs: a machine with another mark is outdated. `image`: the image's id.

    `zones`: the zones of machines, for a cloud that makes another group for other zones. The mark leaves out inputs
    whose change must end no machine. These are the agent's code (an old agent continues), settings that a later monkey
    may add, and the time at which machines end.
    """
    said = [image, cloud.disk, cloud.spot, cloud.network, sorted(cloud.subnets), told.store, dict(told.secrets)]
    said += [told.signers, told.idle_timeout, told.max_slots, told.cache_size, told.orphan_timeout]
    said += [told.runtime] if told.runtime else []
    said += [sorted(zones)] if zones else []
    said += [{"resources": told.resources}] if told.resources else []
    said += [{"lease": told.lease}] if told.lease else []
    said += [{"mounts": list(told.mounts)}] if told.mounts else []
    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:HASH]
