"""Google's cloud, as far as machines meet it: a bucket, secrets, and a managed group whose machines really boot."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

from monkey_stacks.gcp import machine_rights
from tests.bucket.dialect import Answer, Request, error
from tests.bucket.server import NAME
from tests.clouds.gcp.guard import TOKEN, Guard, GuardedBucket, make_token
from tests.clouds.gcp.iam import Given, Iam, check_condition
from tests.clouds.gcp.served import make_handler
from tests.hosts import Lab
from tests.rented.machine import Rented
from tests.rented.metadata import Metadata

PROJECT, ZONE = "a-project", "europe-west4-a"
GROUP = f"zones/{ZONE}/instanceGroupManagers/monkey-shop-rented"


#: The fleet and the store that the machines are of, and the address of their service account.
FLEET, PREFIX = "rented", "team/sweeps"
EMAIL = f"monkey-0123456789@{PROJECT}.iam.gserviceaccount.com"


class Bucket(GuardedBucket):
    """The bucket of the account: who has no token of it is not let in."""

    def answer(self, request: Request) -> Answer | None:
        """See `FakeBucket.answer`."""
        if request.headers.get("authorization") not in (f"Bearer {TOKEN}", f"Bearer {make_token(EMAIL)}"):
            return error(401, "AuthenticationRequired")
        return super().answer(request)


class Google:
    """An account with a bucket, some secrets and a group."""

    def __init__(self, lab: Lab) -> None:
        """Make it, without any machine."""
        self.lab, self.guard = lab, Guard(self._iam)
        self.bucket = Bucket(self.guard, f"{lab.network}.1")
        self.secrets: dict[str, str] = {}
        #: How many machines the group wants; and what it was asked for.
        self.wanted, self.asked = 0, list[str]()
        self.machines: dict[str, Rented] = {}
        self._apis = ThreadingHTTPServer((f"{lab.network}.1", 0), make_handler(self.guard, self.answer))
        threading.Thread(target=self._apis.serve_forever, args=(0.05,), daemon=True).start()

    def _iam(self) -> Iam:
        """Return what apply gives to the machines of such a fleet."""
        member, role = f"serviceAccount:{EMAIL}", machine_rights.spell_group_role(PROJECT)
        rights = machine_rights.write_bucket_rights(NAME, PREFIX, "shop", FLEET).values()
        given = [
            *(
                Given(f"projects/_/buckets/{NAME}", each.role, member, check_condition(each.condition))
                for each in rights
            ),
            Given(f"projects/{PROJECT}", role, member),
            *(Given(f"projects/{PROJECT}/secrets/{name}", machine_rights.SECRET, member) for name in self.secrets),
        ]
        return Iam(tuple(given), {role: frozenset(machine_rights.GROUP_CALLS)})

    def group(self, startup_script: str, machines: int) -> None:
        """Have the group want so many machines, which boot by `startup_script`."""
        at = f"http://{self.lab.network}.1:{self._apis.server_address[1]}/"
        names = ("COMPUTE", "SECRETMANAGER")
        environment = {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": at for name in names}
        self.wanted = machines
        token = {"access_token": make_token(EMAIL), "expires_in": 3599, "token_type": "Bearer"}
        for number in range(90, 90 + machines):
            name = f"monkey-shop-rented-{secrets.token_hex(2)}"
            said = {
                "name": name,
                "zone": f"projects/123456/zones/{ZONE}",
                "preempted": "FALSE",
                "service-accounts/default/token": json.dumps(token),
                "attributes/startup-script": startup_script,
            }
            self.machines[name] = Rented(self.lab, name, number, Metadata("gcp", said), environment)
            self.machines[name].start()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        """Return status and JSON of a call of an API."""
        if found := re.fullmatch(rf"/v1/projects/{PROJECT}/secrets/([^/]+)/versions/latest:access", path):
            if found[1] not in self.secrets:
                return 404, {"error": {"code": 404, "message": f"Secret [{found[1]}] not found"}}
            data = base64.b64encode(self.secrets[found[1]].encode()).decode()
            return 200, {"name": path, "payload": {"data": data}}
        if method == "POST" and path == f"/compute/v1/projects/{PROJECT}/{GROUP}/deleteInstances":
            return self._delete(json.loads(body)["instances"])
        return 404, {"error": {"code": 404, "message": path}}

    def _delete(self, instances: list[str]) -> tuple[int, object]:
        names = [instance.removeprefix(f"zones/{ZONE}/instances/") for instance in instances]
        if not self.machines.keys() >= set(names):
            return 400, {"error": {"code": 400, "message": f"no instance of the group: {instances}"}}
        self.asked += names
        self.wanted -= len(names)
        return 200, {"kind": "compute#operation", "status": "RUNNING"}

    def turn(self) -> bool:
        """Cut the power of machines that the group was asked to delete."""
        for name in self.asked:
            if self.machines[name].runs:
                self.machines[name].kill()
        return True

    @property
    def running(self) -> list[Rented]:
        """The machines that have power."""
        return [machine for machine in self.machines.values() if machine.runs]

    def close(self) -> None:
        """Take everything away."""
        self._apis.shutdown()
        self._apis.server_close()
        for machine in self.machines.values():
            machine.close()


@contextlib.contextmanager
def google(lab: Lab) -> Iterator[Google]:
    """Run an account for a while."""
    made = Google(lab)
    with made.bucket:
        try:
            yield made
        finally:
            made.close()
