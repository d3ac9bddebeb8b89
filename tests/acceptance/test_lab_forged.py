"""A plan of hosts whose state another program wrote: nothing of it runs, and Pulumi is not even started."""

from __future__ import annotations

import base64
import json
import os
import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.lab_site import LabSite, lines
from tests.acceptance.shop import until

pytestmark = pytest.mark.slow
URN, HOST = "urn:pulumi:lab::shop::", "pulumi-python:dynamic/monkey:Host"


class Payload:
    """Runs a command when it is read as a pickle."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self._command,)


def forge(site: LabSite, proof: Path, id_: str) -> None:
    """Write a state of one host, as a job on a host can that has the key of the store; nothing of monkey is needed."""
    prov = base64.b64encode(pickle.dumps(Payload(f"(id; env) > {proof}"))).decode()
    said = {"host": "h9", "workdir": "~/.monkey", "store": site.url, "project": "shop", "fleet": "lab", "drift": ""}
    inputs = {"__provider": prov, **said, "idle_timeout": 600.0, "gpus": "auto", "agent": "x"}
    stack = {"urn": f"{URN}pulumi:pulumi:Stack::shop-lab", "custom": False, "type": "pulumi:pulumi:Stack"}
    maker = {"type": "pulumi:providers:pulumi-python", "custom": True, "id": "1"}
    maker["urn"] = f"{URN}{maker['type']}::default"
    host = {"urn": f"{URN}{HOST}::h9", "custom": True, "id": id_, "type": HOST, "inputs": inputs}
    host |= {"outputs": {**inputs, "away": False}, "parent": stack["urn"], "provider": f"{maker['urn']}::1"}
    manifest = {"time": "2026-01-01T00:00:00Z", "magic": sha256(b"v3.232.0").hexdigest(), "version": "v3.232.0"}
    latest = {"manifest": manifest, "resources": [stack, maker, host]}
    state = site.store / "projects/shop/machines/lab/state/.pulumi"
    (state / "stacks/shop").mkdir(parents=True, exist_ok=True)
    body = {"version": 3, "checkpoint": {"stack": "organization/shop/lab", "latest": latest}}
    (state / "stacks/shop/lab.json").write_text(json.dumps(body))
    (state / "meta.yaml").write_text("version: 1\n")


def test_a_plan_runs_nothing_of_a_forged_state_and_needs_no_pulumi(lab_site: LabSite, tmp_path: Path) -> None:
    site, proof = lab_site, tmp_path / "proof"
    site.hosts("h3")
    site.providers("h3", max_slots=1)
    site.sweep(jobs=1)
    site.apply()
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"], "the job ends")
    state = site.store / "projects/shop/machines/lab/state/.pulumi/stacks/shop/lab.json"
    site.sweep(jobs=2)
    calls, honest = site.calls, state.read_bytes()

    forge(site, proof, "x")
    for verb in ("plan", "apply", "audit"):
        said = site.run(verb, code=None)
        assert not proof.exists(), verb
        assert "stacks/shop/lab.json: names 'h9', which has the id 'x'. Nothing of it was run" in said
    forge(site, proof, "h9:~/.monkey")
    said = site.run("plan")
    assert lines(said, "lab/h9") == ["- lab/h9: everything of it is taken away"] and lines(said, "lab/h3")
    assert site.calls == calls, "Pulumi was not started"
    # Without Pulumi and its plugins, a plan says the same.
    path, site.shop.env["PATH"] = site.shop.env["PATH"], site.bare
    state.write_bytes(honest)
    site.providers("h3", max_slots=2)
    assert lines(site.run("plan"), "lab/h3") == ["~ lab/h3: max_slots 1 → 2"]
    site.shop.env["PATH"] = path
    assert site.apply() and site.calls > calls
    assert not proof.exists() and "Traceback" not in site.said
