"""What a machine of a cloud is told, and what it makes of what it sees."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey.fleet.boot_failures import BootFailure
from monkey_stacks.boot import MAX_USERDATA_BYTES, MachineSettings, write_user_data
from monkey_stacks.boot.remote.boot_report import LINES, mask_line, read_tails
from monkey_stacks.boot.remote.dead_man_switch import AgentSeen, EndReason, judge_end

AWS = MachineSettings(
    cloud="aws",
    store="s3://a-bucket-of-a-team/monkey/sweeps?region=eu-central-1",
    project="a-project-of-a-name",
    fleet="a-fleet",
    bundle="0123456789abcdef" * 4,
    parts=25,
    signers="fedcba9876543210" * 4,
    group="monkey-a-project-of-a-name-a-fleet",
    region="eu-central-1",
    secrets={"WANDB_API_KEY": 'ssm:/team/it\'s "quoted"', "HF_TOKEN": "secretsmanager:hf"},
)
GCP = dataclasses.replace(AWS, cloud="gcp", store="gs://bucket/x", gcp_project="p", region="")
WATCHED = {"boot_patience": 900.0, "orphan_timeout": 120.0}
LIVES = AgentSeen("active", left=False, goodbye="", heard=1000.0, now=1010.0, began=100.0)


@pytest.mark.parametrize("settings", [AWS, GCP], ids=["aws", "gcp"])
@pytest.mark.needs("ruff")
def test_user_data_is_one_text_that_needs_nothing(settings: MachineSettings, tmp_path: Path) -> None:
    text = write_user_data(settings)
    assert text == write_user_data(dataclasses.replace(settings)) and text.startswith("#!/usr/bin/env python3\n")
    assert len(text.encode()) <= MAX_USERDATA_BYTES
    many = {f"WANDB_API_KEY_{n:02}": f"ssm:/team/wandb-{n:02}" for n in range(15)}  # docs/aws.md promises as many
    assert len(write_user_data(dataclasses.replace(settings, secrets=many))) <= MAX_USERDATA_BYTES
    # Two modules with a name in common, a name of nobody, and what an old image's Python could not even read.
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent))
    assert ruff is not None
    command = [ruff, "check", "--isolated", "--select=F", "--ignore=F401", "--target-version=py38", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    # It reads its settings, and begins with what only root may do; before that, nothing is touched.
    script = tmp_path / "boot.py"
    script.write_text(text.replace("\nrun_command(json", "\nprint(json.dumps(json", 1).rpartition(",")[0] + "))\n")
    run = subprocess.run([sys.executable, "-I", "-S", script], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == dataclasses.asdict(settings)


def test_what_is_too_long_is_refused() -> None:
    many = {f"SECRET_{n}": f"ssm:/team/{'x' * 100}/{n}" for n in range(20)}
    with pytest.raises(FleetError, match="too long for a cloud") as caught:
        write_user_data(dataclasses.replace(AWS, secrets=many))
    assert f"provider {AWS.fleet!r} in monkey.yaml" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("seen", "end"),
    [
        (LIVES, None),
        (dataclasses.replace(LIVES, state="activating", left=True), None),
        (dataclasses.replace(LIVES, state="inactive"), None),
        (dataclasses.replace(LIVES, now=1119.0), None),
        (dataclasses.replace(LIVES, now=1121.0), ("no heartbeat for 121 s", True, True)),
        # The process may be there, and the store not: what counts is who was heard.
        (dataclasses.replace(LIVES, state="", now=1121.0), ("no heartbeat for 121 s", True, True)),
        (dataclasses.replace(LIVES, heard=None, now=999.0), None),
        (dataclasses.replace(LIVES, heard=None, now=1001.0), ("no heartbeat within 900 s of the boot", True, True)),
        # Of the boot before.
        (dataclasses.replace(LIVES, heard=5000.0, now=999.0), None),
        (dataclasses.replace(LIVES, heard=5000.0, now=1001.0), ("within 900 s of the boot", True, True)),
        (dataclasses.replace(LIVES, state="inactive", left=True), ("nothing to do", True, False)),
        # Somebody is to come in its place.
        (dataclasses.replace(LIVES, state="inactive", left=True, goodbye="spot notice"), ("spot notice", False, False)),
        (dataclasses.replace(LIVES, state="deactivating", goodbye="spot notice"), None),
        (dataclasses.replace(LIVES, state="failed"), ("the agent failed", True, True)),
    ],
)
def test_a_machine_ends_when_it_is_of_no_use(seen: AgentSeen, end: tuple[str, bool, bool] | None) -> None:
    found = judge_end(seen, WATCHED)
    if end is None:
        assert found is None
    else:
        assert isinstance(found, EndReason) and end[0] in found.why and (found.shrinks, found.failed) == end[1:]
        began = seen.heard is not None and seen.heard <= seen.now and seen.state != "failed"
        assert not found.failed or BootFailure("", "", found.why, 0.0).lasting is not began, "the next one may, too"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("key ASIAABCDEFGHIJKLMNOP is used", "key *** is used"),
        ("X-Amz-Security-Token: abc== next", "*** next"),
        ("{'Authorization': 'AWS4-HMAC-SHA256 Credential=…'}", "{'***"),
        ("wandb_secret=abc and more", "*** and more"),
        ("the token ya29.abc-def", "the token ***"),
        ("read by us alone", "read *** alone"),
        ("POST https://secretsmanager.eu-central-1.amazonaws.com/: 400 no", None),
        ("the machine cannot read the secret HF_TOKEN at ssm:/hf: 400", None),
    ],
)
def test_what_is_told_has_no_secret(line: str, told: str | None) -> None:
    assert mask_line(line, {"by us", ""}) == (line if told is None else told)


def test_last_words_are_few(tmp_path: Path) -> None:
    logs = [tmp_path / name for name in ("missing", "long", "short")]
    logs[1].write_bytes(b"\xff\n" + b"".join(b"line %d\n" % n for n in range(20_000)))
    logs[2].write_text("x" * 10_000 + "\n")
    found = read_tails((), logs)
    assert len(found) == LINES and found[-2] == "line 19999" and len(found[-1]) == 500
