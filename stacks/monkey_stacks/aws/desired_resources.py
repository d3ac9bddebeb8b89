"""The plan of a fleet on AWS, as a value: the program is made from it. A saved plan is bound to most of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from monkey.spec.project.cloud import CloudSettings
from monkey_stacks.aws import machine_rights
from monkey_stacks.aws.api.catalog import AwsImage
from monkey_stacks.aws.api.naming import AwsStack

#: The network of our own, and its subnets: a sixteenth for each zone, by the zone's letter.
NETWORK = "10.73.0.0/16"


@dataclass(frozen=True)
class AwsFleetPlan:
    """A fleet on AWS: all that its resources are made from."""

    stack: AwsStack
    region: str
    types: tuple[str, ...]
    #: The image as monkey.yaml has it, and which one that is.
    image_name: str
    image: AwsImage
    #: Bytes.
    disk: int
    max_instances: int
    spot: bool
    #: A network that is there already, or "" for one of our own in these zones.
    vpc: str
    subnets: tuple[str, ...]
    zones: tuple[str, ...]
    #: What machines are told when they boot, and what they may do: texts.
    user_data: str
    role: str
    #: What a machine is made from, but for the agent's code: one that was made from something else is outdated.
    made: str
    #: What monkey.yaml says of machines, as a hash (`hash_configuration`).
    configured: str = ""

    @property
    def gibibytes(self) -> int:
        """Return the size of a disk as AWS has it; no image is larger than its disk."""
        return -(-max(self.disk, self.image.least) >> 30)

    @property
    def inputs(self) -> dict[str, Any]:
        """Return it as JSON, long texts by their hashes."""
        said = {name: value for name, value in asdict(self).items() if name not in ("user_data", "role", "configured")}
        texts = {"user_data": self.user_data, "role": self.role}
        return {**said, **{name: sha256(text.encode()).hexdigest() for name, text in texts.items()}}

    @property
    def bound(self) -> dict[str, Any]:
        """Return the inputs that a saved plan is bound to: without those that change by themselves.

        These are the id of the newest image, zones that the cloud adds, the agent's code, and the signers.
        """
        moving = ("image", "zones", "user_data", "made")
        said = {name: value for name, value in self.inputs.items() if name not in moving}
        return {**said, "configured": self.configured}


def write_role(cloud: CloudSettings, stack: AwsStack, store_url: str, partition: str) -> str:
    """Return the policy of the machines' role."""
    return machine_rights.write_machine_rights(store_url, stack, cloud.region, partition, cloud.secrets)


def compute_subnet_range(zone: str) -> str:
    """Return the range of addresses of a zone's subnet: by its letter, so that a new zone moves no other."""
    return f"10.73.{(ord(zone[-1]) - ord('a')) % 16 * 16}.0/20"
