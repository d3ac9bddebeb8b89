"""What `monkey doctor` says of agents: values in, checks out."""

from __future__ import annotations

from typing import Any

from monkey.apply.doctor import _agents
from monkey.protocol.snapshot import AgentView, Snapshot


def agent(name: str, *, alive: bool = True, **vitals: Any) -> AgentView:
    return AgentView(f"f/{name}/1", "f", 3, 0.0, 0, 0, vitals, None, alive)


def test_what_agents_say_of_their_way_to_influxdb() -> None:
    way = {"url": "http://i:8086", "owed": 12 << 20, "sent": 5, "dead": 3, "dropped": 0, "error": "connection refused"}
    well = {"url": "http://i:8086", "owed": 100, "sent": 5, "dead": 0, "dropped": 0, "error": ""}
    agents = [agent("a", metrics=[way]), agent("b", metrics=[well]), agent("gone", alive=False, metrics=[way])]
    found = list(_agents(Snapshot({}, agents, ["entry 3 is torn"], set(), {})))
    wrong = [check.text for check in found if check.wrong]
    assert wrong == [
        "entry 3 is torn",
        "agent f/a/1 cannot send to http://i:8086: connection refused; 12 MiB wait there",
        "agent f/a/1 has 3 points that InfluxDB refused (http://i:8086)",
    ]
    assert all(check.hint for check in found if check.wrong)
    assert found[-1].text == "2 are alive" and not found[-1].wrong


def test_heartbeats_of_another_version_do_no_harm() -> None:
    for odd in ("x", [1], {"url": 3}, [{}], [{"error": "e"}]):
        found = list(_agents(Snapshot({}, [agent("a", metrics=odd)], [], set(), {})))
        assert found[-1].text == "1 is alive"
