"""Amazon, with machines that really boot: each instance that a group has is a Debian, started by the user data of the
group's launch template, with the rights of its own role.
"""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import services
from tests.clouds.account import account
from tests.clouds.aws.mends import mend
from tests.clouds.wire import Answer, Call, Wire
from tests.hosts import Lab
from tests.iam import Judge
from tests.rented.machine import Rented
from tests.rented.metadata import Metadata, role
from tests.rented.rights import Rights, Session

#: Seconds between looks at what became of instances.
TURN = 0.25
#: States of an instance that has no power any more.
_GONE = ("shutting-down", "terminated")


@dataclass
class Gate:
    """Holds a machine's calls until it is opened."""

    chosen: Callable[[Call], bool]
    reached: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)


class Amazon:
    """An account whose instances boot, and end as it says; `aws` is the account as whoever applies has it."""

    def __init__(self, lab: Lab, judge: Judge) -> None:
        """Have nothing yet; `begin` gives it an account."""
        self.lab, self._judge = lab, judge
        self.machines: dict[str, Rented] = {}
        #: How many more machines there is capacity for.
        self.room = 100
        self.gates: list[Gate] = []
        #: What was written by anybody, machines or not: when it came, the key, and what it says.
        self.written: list[tuple[float, str, bytes]] = []
        self._numbers, self._changed = iter(range(20, 90)), True
        self._over, self._thread = threading.Event(), threading.Thread(target=self._turns)
        self._trouble: list[BaseException] = []

    @contextlib.contextmanager
    def running(self, upstream: str, base: Path) -> Iterator[None]:
        """Run it for a while, with moto at `upstream`."""
        with account(upstream, base, self.answer, f"{self.lab.network}.1") as self.aws:
            self.rights = Rights(self.aws, self._judge)
            self._thread.start()
            try:
                yield
            finally:
                self._over.set()
                for gate in self.gates:
                    gate.open.set()
                self._thread.join()
                for machine in self.machines.values():
                    machine.close()
        assert not self._trouble, self._trouble

    def answer(self, wire: Wire, call: Call) -> Answer | None:
        """Judge a call, as far as a machine makes it; the rest is moto's, mended."""
        refused = self.rights.answer(wire, call)
        if call.service == "s3" and call.method == "PUT":
            self.written.append((time.monotonic(), call.path.partition("?")[0], call.body))
        if self.rights.who(call) is not None:
            for gate in self.gates:
                if not gate.open.is_set() and gate.chosen(call):
                    gate.reached.set()
                    gate.open.wait()
        if not call.changes or call.service not in ("ec2", "autoscaling"):
            return refused or mend(wire, call)
        answer = refused or mend(wire, call) or wire.forward(call)
        self._changed = True
        return answer

    def hold(self, chosen: Callable[[Call], bool]) -> Gate:
        """Hold what machines ask for from now on, and is so."""
        self.gates.append(Gate(chosen))
        return self.gates[-1]

    def _turns(self) -> None:
        had: object = None
        while not self._over.wait(TURN):
            try:
                have = self.room > 0, {name for name, machine in self.machines.items() if machine.runs}
                if self._changed or have != had:
                    self._changed, had = False, have
                    self._turn()
            except BaseException as exc:  # told where the test can see it
                self._trouble.append(exc)
                return

    def _turn(self) -> None:
        """Boot what is started, cut the power of what is terminated, and terminate what has shut down."""
        ec2 = self.aws.client("ec2")
        found = {
            one["InstanceId"]: one
            for reservation in ec2.describe_instances()["Reservations"]
            for one in reservation["Instances"]
        }
        templates = self._templates()
        for name, raw in found.items():
            machine, state = self.machines.get(name), raw["State"]["Name"]
            if machine is None and state not in _GONE and name in templates and self.room:
                self.room -= 1
                self.machines[name] = self._boot(name, templates[name])
            elif machine is not None and not machine.runs and state not in _GONE:
                self._shut_down(name, templates.get(name))
            elif machine is not None and machine.runs and state in _GONE:
                machine.kill()

    def _shut_down(self, name: str, template: dict[str, Any] | None) -> None:
        """Do with an instance that has shut down itself what its template says."""
        ec2 = self.aws.client("ec2")
        if template is not None and template.get("InstanceInitiatedShutdownBehavior") != "terminate":
            ec2.stop_instances(InstanceIds=[name])
        else:
            ec2.terminate_instances(InstanceIds=[name])
        self._changed = True  # its group may begin another one

    def _templates(self) -> dict[str, dict[str, Any]]:
        """Return the data of the launch template of each instance of a group."""
        found: dict[str, dict[str, Any]] = {}
        for group in self.groups:
            policy = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
            spec = policy.get("LaunchTemplateSpecification") or group["LaunchTemplate"]
            named = {"LaunchTemplateId": spec["LaunchTemplateId"]}
            versions = self.aws.client("ec2").describe_launch_template_versions(**named)["LaunchTemplateVersions"]
            newest = max(versions, key=lambda each: each["VersionNumber"])["LaunchTemplateData"]
            found |= {one["InstanceId"]: newest for one in group["Instances"]}
        return found

    def _boot(self, name: str, template: dict[str, Any]) -> Rented:
        profile = template["IamInstanceProfile"]["Name"]
        iam = self.aws.client("iam")
        [its] = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"]
        keys = self.rights.admit(name, its["RoleName"])
        told = {"AccessKeyId": keys.access_key, "SecretAccessKey": keys.secret_key, "Token": keys.token}
        user_data = base64.b64decode(template["UserData"]).decode()
        said = {"meta-data/instance-id": name, "user-data": user_data, **role(its["RoleName"], told)}
        environment = {"AWS_ENDPOINT_URL": self.aws.wire.endpoint}
        machine = Rented(self.lab, name, next(self._numbers), Metadata("aws", said), environment)
        machine.start()
        return machine

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The account's groups."""
        return list(self.aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"])

    @property
    def wanted(self) -> int:
        """How many machines the one group wants."""
        [group] = self.groups
        return int(group["DesiredCapacity"])

    @property
    def sessions(self) -> list[Session]:
        """All keys that machines had."""
        return list(self.rights.sessions.values())

    @property
    def living(self) -> list[Rented]:
        """The machines that have power."""
        return [machine for machine in list(self.machines.values()) if machine.runs]

    @property
    def told(self) -> str:
        """All that machines said, and were refused."""
        said = "\n".join(f"=== {name}\n{machine.told}" for name, machine in self.machines.items())
        return f"{said}\nrefused: {self.rights.refused}\ntrouble: {self._trouble}"


@contextlib.contextmanager
def amazon(lab: Lab, base: Path) -> Iterator[Amazon]:
    """Run an account for a while; `base`: a directory of its own."""
    with services.moto(f"{lab.network}.1") as endpoint, Judge() as judge:
        made = Amazon(lab, judge)
        with made.running(endpoint, base):
            yield made
