"""A machine of Google's that ends before its sweeps do has its group make it anew, by what the group makes now."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from monkey.fleet.cloud import instance_metadata
from monkey.fleet.cloud.gcp_machine import ENDS, GcpMachine

GROUP = "projects/42/regions/europe-west4/instanceGroupManagers/monkey-shop"
TEMPLATE = "projects/42/global/instanceTemplates/monkey-shop-1"


class Google:
    """Metadata and the group, over HTTP."""

    def __init__(self) -> None:
        self.said = {
            "preempted": "FALSE",
            "name": "monkey-shop-ab12",
            "zone": "projects/42/zones/europe-west4-a",
            "attributes/created-by": GROUP,
            "attributes/instance-template": TEMPLATE,
            "service-accounts/default/token": json.dumps({"access_token": "t"}),
        }
        self.template, self.renewed, self.questions = TEMPLATE, list[Any](), 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    def answer(self, method: str, path: str, body: bytes) -> str | None:
        if path.startswith("/computeMetadata/v1/instance/"):
            return self.said.get(path.removeprefix("/computeMetadata/v1/instance/"))
        self.questions += 1
        if (method, path) == ("GET", f"/compute/v1/{GROUP}"):
            return json.dumps({"versions": [{"instanceTemplate": f"https://x/compute/v1/{self.template}?uniqueId=7"}]})
        if (method, path) == ("POST", f"/compute/v1/{GROUP}/recreateInstances"):
            self.renewed.append(json.loads(body))
            return "{}"
        return None


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    made = Google()
    threading.Thread(target=made.server.serve_forever, args=(0.05,), daemon=True).start()
    at = f"127.0.0.1:{made.server.server_address[1]}"
    monkeypatch.setenv("GCE_METADATA_HOST", at)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", f"http://{at}/")
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_machine_is_made_anew_where_its_group_makes_others_that_stay_longer(google: Google) -> None:
    machine = GcpMachine({})
    google.template = TEMPLATE.replace("-1", "-2")
    assert instance_metadata.read_notice(machine) == "" and not google.questions, "it has no end"
    google.said[f"attributes/{ENDS}"] = str(time.time() + 3600)
    assert instance_metadata.read_notice(machine) == "" and not google.questions, "its end is far away"
    google.said[f"attributes/{ENDS}"] = str(time.time() + 60)
    assert instance_metadata.read_notice(machine) == instance_metadata.OVER
    google.template = TEMPLATE
    assert instance_metadata.read_notice(machine) == "", "another one would end as soon"
    google.said["preempted"] = "TRUE"
    assert instance_metadata.read_notice(machine) == instance_metadata.SPOT
    instance_metadata.replace_machine(machine)
    assert google.renewed == [{"instances": ["zones/europe-west4-a/instances/monkey-shop-ab12"]}]


def _handler(google: Google) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = google.answer(self.command, self.path, body)
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(found or "")))
            self.end_headers()
            self.wfile.write((found or "").encode())

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
