"""`monkey doctor` in a project: first all is well, then everything is wrong at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, Shop
from tests.acceptance.test_hostile import mounting
from tests.trusting import trust


@pytest.mark.slow
@pytest.mark.needs("pulumi-library")
def test_well_and_then_everything_wrong_at_once(shop: Shop) -> None:
    shop.spec(jobs=1)
    before = shop.run("doctor").stdout
    assert "1 of project shop: sweep" in before and "nothing was applied yet" in before
    assert before.endswith("All is well.\n")
    shop.run("apply")
    assert "create-if-absent holds" in shop.run("doctor").stdout
    assert not list((shop.root / ".monkey/store/probe").glob("*"))  # what it tried with is gone
    influxdb = "{url: 'http://127.0.0.1:1', bucket: b, token: INFLUX_TOKEN}"
    providers = "{local: {}, lab: {type: ssh, hosts: [h]}}"
    yaml = f"project: shop\nproviders: {providers}\nmetrics: {{influxdb: {influxdb}}}\n"
    (shop.root / "monkey.yaml").write_text(yaml)
    shop.spec("secrets: [NOBODY_KNOWS]\n", jobs=1)
    shop.spec("parametrs: {a: 1}\n", jobs=1, name="other")
    shop.env["PATH"] = "/nowhere"
    trust("http://127.0.0.1:1", env=shop.env)
    wrong = [one for one in shop.json("doctor", code=1) if one["wrong"]]
    assert all(one["hint"] for one in wrong)
    texts = [f"{one['about']}: {one['text']}" for one in wrong]
    for expected in (
        "specs: specs/other.yaml:5:1: unknown key",
        "pulumi: there is no Pulumi",
        "ssh: there is no program `ssh`",
        "influxdb: the secret is not on this machine: INFLUX_TOKEN",
    ):
        assert any(text.startswith(expected) for text in texts), (expected, texts)
    (shop.root / "specs/other.yaml").unlink()
    shop.env["INFLUX_TOKEN"] = "abc-very-secret"
    done = shop.run("doctor", code=1)
    assert "NOBODY_KNOWS" in done.stdout and "127.0.0.1:1 does not answer: Connection refused" in done.stdout
    assert "very-secret" not in done.stdout + done.stderr
    (shop.root / ".monkey/store/format").unlink()
    assert "! store: " in shop.run("doctor", code=1).stdout


def test_a_place_that_cannot_be_written_can_be_no_store(
    shop: Shop, require: Callable[[str], str], tmp_path: Path
) -> None:
    require("mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {disk}/team/store\n")
    shop.spec(jobs=1)
    script = f"mount -t tmpfs -o ro none {disk} && {' '.join(MONKEY)} doctor"
    done = mounting(shop, script)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{disk}/team/store can be no store: {disk} is not writable for this user" in done.stdout
    assert "All is well" not in done.stdout
    assert "can be one" in shop.run("doctor").stdout
