"""Jobs with an image on hosts of which only some have a container runtime."""

from __future__ import annotations

import pytest

from tests.acceptance.lab_site import LabSite, lines
from tests.acceptance.shop import until
from tests.acceptance.test_image_lacking import RUNTIME

pytestmark = pytest.mark.slow
IMAGE = f"environment: {{image: 'localhost:1/lab/tools@sha256:{'0a' * 32}'}}\n"
NONE = "this machine has none of apptainer, singularity, podman, docker, ch-run"


def test_a_host_without_a_runtime_leaves_jobs_with_an_image_to_the_others(lab_site: LabSite) -> None:
    site = lab_site
    bare, able = site.hosts("h1", "h2")
    podman = able.root / "usr/local/bin/podman"
    try:
        podman.write_text(RUNTIME)
        podman.chmod(0o755)
        site.providers("h1", "h2", max_slots=1, idle_timeout="4s")
        site.sweep(IMAGE, jobs=4)
        said = site.run("plan")
        assert lines(said, "warning: h1 runs no job with an image") == [
            f"warning: h1 runs no job with an image: {NONE} (hint: install one of them)"
        ]
        assert "h2 runs no job" not in said and "no machine of this provider runs images" not in said
        site.apply()
        until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 4, "the other host runs them", step=0.5)
        assert (site.ledger(bare).executions, site.ledger(able).executions) == (0, 4)

        podman.write_text("#!/bin/sh\necho no storage >&2\nexit 125\n")
        site.sweep(IMAGE, jobs=6)
        said = site.run("plan")
        assert "h2 runs no job with an image: podman does not work: no storage (hint: repair it" in said
        assert "no machine of this provider runs images: such jobs stay queued" in said
        site.apply()
        podman.write_text(RUNTIME)
        assert "h2 runs no job" not in site.run("plan"), "it was repaired since the apply"
    finally:
        podman.unlink(missing_ok=True)
    site.run("destroy", "-y")
    # What removes an agent's containers outlives it by seconds.
    until(lambda: "monkey.life=" not in able.processes() + bare.processes(), "all has ended on the hosts", step=0.5)
