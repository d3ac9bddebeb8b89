"""Google's cloud, as far as machines meet it: a bucket, secrets, and a managed group whose machines really boot."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.bucket import FakeBucket
from tests.bucket.dialect import Answer, Request, error
from tests.hosts import Lab
from tests.rented.machine import Rented
from tests.rented.metadata import Metadata

PROJECT, ZONE = "a-project", "europe-west4-a"
GROUP = f"zones/{ZONE}/instanceGroupManagers/monkey-shop-rented"


class Bucket(FakeBucket):
    """The bucket of the account: who has no token of it is not let in."""

    def __init__(self, address: str, token: str) -> None:
        """Begin empty."""
        super().__init__(address)
        self._token = token

    def answer(self, request: Request) -> Answer | None:
        """See `FakeBucket.answer`."""
        if request.headers.get("authorization") != f"Bearer {self._token}":
            return error(401, "AuthenticationRequired")
        return super().answer(request)


class Google:
    """An account with a bucket, some secrets and a group."""

    def __init__(self, lab: Lab) -> None:
        """Make it, without any machine."""
        self.lab, self.token = lab, f"ya29.{secrets.token_urlsafe(24)}"
        self.bucket = Bucket(f"{lab.network}.1", self.token)
        self.secrets: dict[str, str] = {}
        #: How many machines the group wants; and what it was asked for.
        self.wanted, self.asked = 0, list[str]()
        self.machines: dict[str, Rented] = {}
        self._apis = ThreadingHTTPServer((f"{lab.network}.1", 0), _handler(self))
        threading.Thread(target=self._apis.serve_forever, args=(0.05,), daemon=True).start()

    def group(self, startup_script: str, machines: int) -> None:
        """Have the group want so many machines, which boot by `startup_script`."""
        at = f"http://{self.lab.network}.1:{self._apis.server_address[1]}/"
        names = ("COMPUTE", "SECRETMANAGER")
        environment = {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": at for name in names}
        self.wanted = machines
        token = {"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"}
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


def _handler(google: Google) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, said = google.answer(self.command, self.path, body)
            if self.headers.get("Authorization") != f"Bearer {google.token}":
                status, said = 401, {"error": {"code": 401, "message": "invalid authentication credentials"}}
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextlib.contextmanager
def google(lab: Lab) -> Iterator[Google]:
    """Run an account for a while."""
    made = Google(lab)
    with made.bucket:
        try:
            yield made
        finally:
            made.close()
