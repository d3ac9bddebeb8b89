"""Plugins that a state names: the real Pulumi, a forged state, and a server that would serve the plugin."""

from __future__ import annotations

import http.server
import io
import json
import tarfile
import threading
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import CorruptObject
from monkey_stacks.engine.engine_outcome import EngineOutcome
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from tests.stacks.desk import FLEET, PROJECT, Desk, Sheet

pytestmark = pytest.mark.slow

KEY = f"projects/{PROJECT}/machines/{FLEET}/state/.pulumi/stacks/{PROJECT}/{FLEET}.json"


class Stranger:
    """Serves a program as whatever plugin is asked for; the program leaves a file."""

    def __init__(self, server: http.server.HTTPServer, proof: Path) -> None:
        self.url, self.proof = f"http://127.0.0.1:{server.server_port}", proof
        self.asked: list[str] = []


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Stranger]:
    class Serving(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            packed = plugin(self.path.partition("-v1.0.0")[0].strip("/"), made.proof)
            self.send_response(200)
            self.send_header("Content-Length", str(len(packed)))
            self.end_headers()
            self.wfile.write(packed)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: what was asked is kept."""

    with http.server.HTTPServer(("127.0.0.1", 0), Serving) as server:
        made = Stranger(server, tmp_path / "proof")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def plugin(name: str, proof: Path) -> bytes:
    """Return the archive of a plugin whose program leaves the file `proof`."""
    program, packed = f"#!/bin/sh\ntouch {proof}\n".encode(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(program), 0o755
        tar.addfile(member, io.BytesIO(program))
    return packed.getvalue()


def forge(desk: Desk, name: str, url: str) -> None:
    """Add a resource to the state, as anybody can who may write to the store, of a provider that `url` serves."""
    path = Path(desk.url, KEY)
    body = json.loads(path.read_text())
    resources = body["checkpoint"]["latest"]["resources"]
    urn, inputs = f"urn:pulumi:{FLEET}::{PROJECT}::", {"version": "1.0.0", "pluginDownloadURL": url}
    provider = {"urn": f"{urn}pulumi:providers:{name}::default", "type": f"pulumi:providers:{name}", "id": "1"}
    thing = {"urn": f"{urn}{name}:index:Thing::thing", "type": f"{name}:index:Thing", "id": "2"}
    resources.append({**provider, "custom": True, "inputs": inputs, "outputs": inputs})
    of = {"parent": resources[0]["urn"], "provider": f"{provider['urn']}::1"}
    resources.append({**thing, "custom": True, "inputs": {}, "outputs": {}, **of})
    path.write_text(json.dumps(body))


def test_no_plugin_is_fetched_on_the_word_of_a_state(desk: Desk, stranger: Stranger) -> None:
    wanted = desk.program(Sheet("a", "first"))

    def plan(engine: PulumiEngine) -> Awaitable[EngineOutcome]:
        return engine.preview(wanted, refresh=True)

    def apply(engine: PulumiEngine) -> Awaitable[EngineOutcome]:
        return engine.up(wanted)

    desk.run(apply)
    honest = Path(desk.url, KEY).read_bytes()
    # Of the clouds' own plugins, too: a state of ours never says where to fetch them.
    for name, ask in [("evil", plan), ("aws", plan), ("gcp", plan), ("evil", apply), ("evil", PulumiEngine.destroy)]:
        Path(desk.url, KEY).write_bytes(honest)
        forge(desk, name, stranger.url)
        with pytest.raises(CorruptObject) as raised:
            desk.run(ask)
        assert (stranger.asked, stranger.proof.exists()) == ([], False)
        assert raised.value.message.startswith(
            f"{KEY}: names a provider of Pulumi's that monkey does not use here: '{name}'"
        )
        # No advice to install it, least of all from there.
        assert "install" not in str(raised.value) and "put an older version" in (raised.value.hint or "")
    assert desk.written == {"a": "first"}
