"""The settings that a rented machine boots with: no secret, and nothing that changes while the fleet does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: Seconds within which a machine that boots must have sent its first heartbeat.
BOOT_PATIENCE = 15 * 60.0


@dataclass(frozen=True)
class MachineSettings:
    """A machine of a fleet, as its user data tells it. All of it can be read by who may describe the machine."""

    #: "aws" or "gcp".
    cloud: str
    #: The store's URL in its one form, without a profile (`store_credentials.strip_profile`): s3:// on aws, gs:// on
    #: gcp.
    store: str
    project: str
    fleet: str
    #: Hash of the bundle, which is in the store, and the number of its parts (`bundle/<sha256>/0`, …).
    bundle: str
    parts: int
    #: Hash of the list of signers that it obeys, which is in the store (`signers/<sha256>`).
    signers: str
    #: The auto scaling group from which a machine takes itself; on gcp the path of the managed instance group:
    #: zones/Z/instanceGroupManagers/NAME, or regions/R/instanceGroupManagers/NAME.
    group: str
    #: Of the machines: region of aws. The store's is in its URL, else it is this one.
    region: str = ""
    #: Of gcp: the project of the cloud in which the group is.
    gcp_project: str = ""
    #: Seconds without work after which the agent leaves, and its machine with it.
    idle_timeout: float = 60.0
    max_slots: int | None = None
    #: Bytes that the machine may keep of code, environments and datasets; None for half of its disk.
    cache_size: int | None = None
    #: The program that runs images; None for the first that works there.
    runtime: str | None = None
    #: The counted resources of a machine, as `spell_counts` has them.
    resources: str = ""
    #: Seconds that the agent may be silent before others take its jobs over; 0 for the agent's default.
    lease: float = 0.0
    #: Path, source and command of what root mounts.
    mounts: Sequence[Sequence[str]] = field(default_factory=list)
    #: Seconds without an acknowledged heartbeat after which a machine ends itself.
    orphan_timeout: float = 15 * 60.0
    #: Seconds after the boot within which there must be a first one.
    boot_patience: float = BOOT_PATIENCE
    #: Name of a job's secret to where the machine's role reads it: ssm:/path, secretsmanager:NAME-or-ARN; on gcp
    #: projects/P/secrets/S[/versions/V] or S.
    secrets: Mapping[str, str] = field(default_factory=dict)
    #: More variables of the agent. None of them is secret.
    environment: Mapping[str, str] = field(default_factory=dict)
