"""A cloud's plugin that is not here: the real Pulumi says so, and the command in our error installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey_stacks.engine import plugins
from tests import services
from tests.clouds import account
from tests.clouds.gcp.desk import Google
from tests.clouds.gcp.renter import Renter

pytestmark = pytest.mark.slow


def test_a_missing_plugin_is_installed_by_the_command_that_the_error_has(
    pulumi: None, gcp: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubles = account.plugins(tmp_path)
    monkeypatch.setenv("PATH", f"{services.pulumi_directory()}{os.pathsep}/usr/bin:/bin")
    renter = Renter(gcp.url)
    with pytest.raises(FleetError) as raised:
        renter.converge()
    wanted = f"gcp v{version('pulumi-gcp')}"
    assert f"Pulumi's plugin {wanted} is not installed on this machine" in raised.value.message
    command = (raised.value.hint or "").removeprefix("run: ")
    assert command.endswith(f"pulumi plugin install resource {wanted}") and not gcp.shelf.things
    with pytest.raises(FleetError) as looked:
        plugins.check_plugin("gcp")
    assert looked.value.hint == raised.value.hint

    # As a person would, in another shell; no download, but an archive of the double.
    archive = tmp_path / "gcp.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(doubles / "pulumi-resource-gcp", "pulumi-resource-gcp")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    typed = ["sh", "-c", f"{command} --file {archive}"]
    subprocess.run(typed, env=env, check=True, capture_output=True, timeout=120)
    assert plugins.check_plugin("gcp").startswith(f"plugin {wanted} at {tmp_path}/pulumi/plugins/")
    renter.converge()
    assert gcp.shelf.things
    renter.destroy()


@pytest.mark.parametrize(
    ("program", "modules"),
    [
        ("aws", ("autoscaling", "ec2", "iam")),
        ("gcp", ("compute", "projects", "secretmanager", "serviceaccount", "storage")),
    ],
)
def test_a_program_s_modules_are_loaded_with_it_as_programs_run_in_threads(
    program: str, modules: tuple[str, ...]
) -> None:
    look = f"from monkey_stacks.{program} import program as found\n"
    look += "".join(f"print(type(found.{name}).__name__)\n" for name in modules)
    said = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=120, check=True).stdout
    assert said.split() == ["module"] * len(modules)
