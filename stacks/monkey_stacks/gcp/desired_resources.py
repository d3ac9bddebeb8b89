"""The plan of a fleet at Google, as a value: the program is made from it. A saved plan is bound to most of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Any

from monkey.errors import FleetError
from monkey_stacks.cloud.scaling import ROUNDED
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp.api.catalog import GcpImage
from monkey_stacks.gcp.api.group import MAX_LIFE_SECONDS, parse_time
from monkey_stacks.gcp.api.inventory import TYPES
from monkey_stacks.gcp.api.naming import GcpStack

#: The subnetwork of our own: a network has no addresses at Google.
SUBNETWORK = "10.73.0.0/16"


@dataclass(frozen=True)
class GcpFleetPlan:
    """A fleet at Google: all that its resources are made from."""

    stack: GcpStack
    gcp_project: str
    region: str
    zones: tuple[str, ...]
    type: str
    gpus: int
    #: The image as monkey.yaml has it, and which one that is.
    image_name: str
    image: GcpImage
    #: Bytes.
    disk: int
    disk_type: str
    max_instances: int
    spot: bool
    #: A network that is there already and its part, as paths; or "" for one of our own.
    network: str
    subnetwork: str
    #: The store's bucket, and below what in it; and the paths of secrets.
    bucket: str
    prefix: str
    secrets: tuple[str, ...]
    #: What machines are told when they boot.
    user_data: str
    #: What a machine is made from, but for the agent's code and its end: one made from something else is outdated.
    made: str
    #: When Google deletes machines, as it writes times; "" where nobody says, and then there are none. No input of a
    #: plan: of a revision that is yet to be, it is the clock's.
    until: str
    #: What monkey.yaml says of machines, as a hash (`hash_configuration`).
    configured: str = ""

    @property
    def types(self) -> tuple[str, ...]:
        """The one type, as clouds with several have them."""
        return (self.type,)

    @property
    def gibibytes(self) -> int:
        """Return the size of a disk as Google has it; no image is larger than its disk."""
        return -(-max(self.disk, self.image.least) >> 30)

    @cached_property
    def template(self) -> str:
        """The template's name: another one for whatever is different in it."""
        said = {**self.inputs, "until": parse_time(self.until), "max_instances": 0, "zones": ()}
        return self.stack.template(self.made, json.dumps(said, sort_keys=True))

    @property
    def inputs(self) -> dict[str, Any]:
        """Return it as JSON, long texts by their hashes."""
        said = {name: value for name, value in asdict(self).items() if name not in ("user_data", "until", "configured")}
        return {**said, "user_data": sha256(self.user_data.encode()).hexdigest()}

    @property
    def bound(self) -> dict[str, Any]:
        """Return the inputs that a saved plan is bound to: without those that change by themselves.

        These are the id of the newest image, zones that the cloud adds, the agent's code, and the signers.
        """
        moving = ("image", "zones", "user_data", "made")
        said = {name: value for name, value in self.inputs.items() if name not in moving}
        return {**said, "configured": self.configured}


def find_end_time(expires: float | None, known: Iterable[StateResource]) -> str:
    """Return when machines are to be deleted; the state's time, where that is as good. Raises FleetError."""
    kept = _kept(known)
    then, now = parse_time(kept), time.time()
    if expires is None or expires <= now or (then is not None and abs(then - expires) <= ROUNDED):
        return kept
    if expires - now > MAX_LIFE_SECONDS:
        raise FleetError(
            f"Google deletes machines after {MAX_LIFE_SECONDS / 86400:.0f} days at the latest, "
            "and these are to stay longer",
            hint="write an earlier expires: into the spec, and `monkey extend` it in time",
        )
    return datetime.fromtimestamp(int(expires), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _kept(known: Iterable[StateResource]) -> str:
    found = [each.inputs.get("scheduling") or {} for each in known if each.type == TYPES["instance-template"]]
    return next((str(each["terminationTime"]) for each in found if each.get("terminationTime")), "")


def spell_secret_path(where: str, gcp_project: str) -> str:
    """Return the path of a secret that monkey.yaml names, without its version."""
    path = where if where.startswith("projects/") else f"projects/{gcp_project}/secrets/{where}"
    return path.partition("/versions/")[0]
