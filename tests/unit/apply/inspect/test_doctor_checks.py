"""What `monkey doctor` says of agents: values in, checks out."""

from __future__ import annotations

import asyncio
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.inspect.doctor_checks import DoctorCheck, _agents, _clouds, _programs, check_project
from monkey.cli.render.machine_usage import format_departed_telemetry, format_telemetry
from monkey.errors import FleetError
from monkey.protocol.status.store_snapshot import AgentView, StoreSnapshot
from monkey.spec.project.project import load_project
from tests.unit.apply.small_project import SPEC, StillFleet, StillRentedFleet


def agent(name: str, *, alive: bool = True, boot: int = 1, left: bool = False, **vitals: Any) -> AgentView:
    return AgentView(f"f/{name}/{boot}", "f", name, 3, float(boot), 0, 0, vitals, None, alive, left)


def test_what_agents_say_of_their_way_to_influxdb() -> None:
    way = {"url": "http://i:8086", "owed": 12 << 20, "sent": 5, "dead": 3, "dropped": 0, "error": "connection refused"}
    well = {"url": "http://i:8086", "owed": 100, "sent": 5, "dead": 0, "dropped": 0, "error": ""}
    agents = [agent("a", metrics=[way]), agent("b", metrics=[well])]
    found = list(_agents(StoreSnapshot({}, agents, ["entry 3 is torn"], set(), {})))
    wrong = [check.text for check in found if check.wrong]
    assert wrong == [
        "entry 3 is torn",
        "agent f/a/1 cannot send to http://i:8086: connection refused; 12 MiB wait there",
        "agent f/a/1 has 3 points that InfluxDB refused (http://i:8086)",
    ]
    assert all(check.hint for check in found if check.wrong)
    assert found[-1].text == "2 are alive" and not found[-1].wrong


def test_what_agents_that_are_gone_still_owe() -> None:
    way = {"url": "http://i", "owed": 378, "dead": 3, "dropped": 2000, "error": "connection refused"}
    busy, well = {"url": "http://i", "owed": 378, "error": ""}, {"url": "http://i", "owed": 0, "error": ""}
    agents = [
        agent("left", alive=False, left=True, metrics=[way]),
        agent("killed", alive=False, metrics=[busy]),
        agent("peace", alive=False, left=True, metrics=[busy]),
        agent("sent", alive=False, metrics=[well]),
        # Of several lives the newest tells what is there; and one that is alive, whatever its clock says.
        agent("again", alive=False, boot=2, metrics=[well]),
        agent("again", alive=False, boot=1, metrics=[way]),
        agent("back", alive=True, boot=1, metrics=[well]),
        agent("back", alive=False, boot=2, metrics=[way]),
    ]
    found = list(_agents(StoreSnapshot({}, agents, [], set(), {})))
    assert {check.text for check in found if check.wrong} == {
        "agent f/left/1 left with 378 bytes that may wait for http://i (connection refused)",
        "agent f/left/1 has 3 points that InfluxDB refused (http://i)",
        "agent f/left/1 has 2,000 points that its disk had no room for (http://i)",
        "agent f/killed/1 left with 378 bytes that may wait for http://i",
    }
    assert all(("backfill" in check.hint) or ("dead.lp" in check.hint) for check in found if check.wrong)
    (unsure,) = (check for check in found if not check.wrong and check is not found[-1])
    assert unsure.text == "agent f/peace/1 left with 378 bytes that may wait for http://i, or were sent since"
    how = "the next agent there sends them, or `monkey backfill SWEEP` does"
    assert set(format_departed_telemetry(agents)) == {
        f"metrics: left left with 378 bytes that may wait for http://i (connection refused): {how}",
        "metrics: http://i refused 3 points of left; `monkey doctor` tells where they are kept",
        "metrics: left dropped 2,000 points for want of room; the store has them still",
        f"metrics: killed left with 378 bytes that may wait for http://i: {how}",
    }
    assert format_telemetry(agents) == []


def test_heartbeats_of_another_version_do_no_harm() -> None:
    for odd in ("x", [1], {"url": 3}, [{}], [{"error": "e"}]):
        found = list(_agents(StoreSnapshot({}, [agent("a", metrics=odd)], [], set(), {})))
        assert found[-1].text == "1 is alive"
        gone = agent("a", alive=False, metrics=odd)
        assert list(_agents(StoreSnapshot({}, [gone], [], set(), {})))[
            -1
        ].text == "0 are alive" and not format_departed_telemetry([gone])


def test_each_provider_that_rents_has_a_line() -> None:
    class Asked(StillRentedFleet):
        async def check_offer(self) -> str:
            """Find one that can, and one that cannot."""
            if self.name == "bad":
                raise FleetError("provider 'bad': there is no image ami-0", hint="name one")
            return await super().check_offer()

    found = asyncio.run(_clouds({"local": StillFleet(), "good": Asked("good"), "bad": Asked("bad")}))
    assert found == [
        DoctorCheck("providers", "good: AWS has m5.large"),
        DoctorCheck("providers", "provider 'bad': there is no image ami-0", "name one", wrong=True),
    ]


@pytest.mark.needs("pulumi-gcp")
@pytest.mark.needs("pulumi-aws")
def test_a_missing_plugin_of_a_cloud_has_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PULUMI_HOME", str(home))
    pulumi = tmp_path / "pulumi"
    pulumi.write_text("#!/bin/sh\necho v3.232.0\n")
    pulumi.chmod(0o755)
    (tmp_path / "monkey.yaml").write_text(
        "providers:\n"
        "  a: {type: aws, region: eu-central-1, instance_type: m5.large}\n"
        "  g: {type: gcp, gcp_project: my-project, region: europe-west4, machine_type: e2-small}\n"
    )
    aws, gcp = (f"{name} v{version(f'pulumi-{name}')}" for name in ("aws", "gcp"))
    missing = f"Pulumi's plugin {{}} is not installed on this machine ({platform.node()})"
    run = f"run: PULUMI_HOME={home} pulumi plugin install resource {{}}"
    assert list(_programs(load_project(tmp_path))) == [
        DoctorCheck("pulumi", f"3.232.0 at {pulumi}"),
        DoctorCheck("pulumi", missing.format(aws), run.format(aws), wrong=True),
        DoctorCheck("pulumi", missing.format(gcp), run.format(gcp), wrong=True),
    ]
    kept = home / f"plugins/resource-{aws.replace(' ', '-')}/pulumi-resource-aws"
    kept.parent.mkdir(parents=True)
    beside = tmp_path / "pulumi-resource-gcp"
    for plugin in (kept, beside):
        plugin.touch(0o755)
    assert [each.text for each in _programs(load_project(tmp_path))][1:] == [
        f"plugin {aws} at {kept}",
        f"plugin {gcp} at {beside}",
    ]


@pytest.mark.needs("pulumi-aws")
@pytest.mark.needs("boto3")
def test_without_a_store_that_opens_providers_are_asked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "half")
    cloud = "{type: aws, region: eu-central-1, instance_type: m5.large}"
    (tmp_path / "monkey.yaml").write_text(f"store: s3://bucket\nproviders:\n  cloud: {cloud}\n")
    (tmp_path / "specs").mkdir()
    chosen = "provider: {name: cloud, instance_type: g5.4xlarge}\nexpires: 12h\n"
    (tmp_path / "specs" / "small.yaml").write_text(SPEC + chosen)

    async def checks() -> list[DoctorCheck]:
        return [check async for check in check_project(load_project(tmp_path))]

    found = asyncio.run(checks())
    asked = [check.text.split(":")[0] for check in found if check.about == "providers"]
    assert asked == ["provider 'cloud'", "provider 'cloud..g5.4xlarge'"], "what a spec chooses is asked for, too"
    wrong = {check.about: check for check in reversed(found) if check.wrong}
    assert "found AWS_ACCESS_KEY_ID without" in wrong["store"].text
    assert wrong["providers"].text.startswith("provider 'cloud': there are no credentials for AWS here")


def test_hosts_are_asked_for_a_runtime_and_this_machine_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime here answers only once the event loop has let it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    os.mkfifo(gate := tmp_path / "gate")
    (tmp_path / "podman").write_text(f"#!/bin/sh\n: < {gate}\n")
    (tmp_path / "podman").chmod(0o755)
    (tmp_path / "config").write_text("Host nowhere\n  HostName 127.0.0.1\n  Port 1\n")
    monkeypatch.setenv("MONKEY_SSH_CONFIG", str(tmp_path / "config"))
    providers = "{local: {runtime: podman}, lab: {type: ssh, hosts: [nowhere], runtime: docker}}"
    (tmp_path / "monkey.yaml").write_text(f"providers: {providers}\n")

    async def open_gate() -> None:
        while True:
            try:
                os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
                return
            except OSError:  # nobody reads yet
                await asyncio.sleep(0.01)

    async def images() -> list[DoctorCheck]:
        return [check async for check in check_project(load_project(tmp_path)) if check.about == "images"]

    async def both() -> list[DoctorCheck]:
        opening = asyncio.create_task(open_gate())
        found = await images()
        assert opening.done() and await opening is None
        return found

    here, lab, away = asyncio.run(both())
    assert (here.text, here.wrong) == ("local runs images by podman", False)
    assert lab.text == "lab runs images by docker, as `runtime:` says" and not lab.wrong
    assert away.wrong and "nowhere refuses connections" in away.text and away.hint
