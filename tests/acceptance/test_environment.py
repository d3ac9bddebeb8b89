"""The environment that jobs get is that of whoever applies, though an agent may have been there before."""

from __future__ import annotations

import pytest

from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

TELL = """\
command: ["sh", "-c", 'echo "mood: $MOOD"; sleep {seconds}']
parameters: {{pause: [{seconds}]}}
outputs: []
"""


def patient(shop: Shop) -> None:
    (shop.root / "monkey.yaml").write_text("project: shop\nproviders:\n  local: {type: local, idle_timeout: 60}\n")


def test_an_idle_agent_of_another_environment_is_replaced(shop: Shop) -> None:
    patient(shop)
    shop.env["MOOD"] = "calm-and-secret"
    shop.spec(TELL.format(seconds=0), name="one")
    shop.run("apply")
    (before,) = shop.agents
    shop.env["TERM"] = "another-window"
    shop.spec(TELL.format(seconds=0.01), name="two")
    shop.run("apply")
    assert shop.agents == [before], "the same environment: the same agent"
    file = shop.root / "monkey.yaml"
    file.write_text(file.read_text().replace("idle_timeout: 60", "idle_timeout: 60, max_slots: 1, lease: 5m"))
    shop.spec(TELL.format(seconds=0.015), name="settings")
    assert "the agent here has other settings (max_slots, lease): apply replaces it" in shop.run("plan").stdout
    said = shop.run("apply").stdout
    assert "agent replaced, since it was started with other settings: max_slots, lease" in said
    assert len(shop.agents) == 1 and shop.agents != [before]
    (before,) = shop.agents
    shop.env["MOOD"] = "wild"
    shop.spec(TELL.format(seconds=0.02), name="three")
    said = shop.run("apply").stdout
    assert "agent replaced, since it was started in another environment: MOOD" in said
    assert len(shop.agents) == 1 and shop.agents != [before]
    assert "mood: wild\n" in shop.run("logs", "three").stdout
    again = shop.run("run", "--", "sh", "-c", "echo $MOOD")
    assert (again.stdout, again.stderr.count("replaced")) == ("wild\n", 0)


def test_a_busy_agent_of_another_environment_is_told_of_and_left_alone(shop: Shop) -> None:
    patient(shop)
    shop.env["MOOD"] = "calm"
    shop.spec(TELL.format(seconds=60), name="long")
    shop.run("apply", "--detach")
    until(lambda: shop.states("long").get("running"), "the long job runs")
    (before,) = shop.agents
    shop.env["MOOD"] = "wild"
    shop.spec(TELL.format(seconds=0), name="short")
    said = shop.run("apply", "specs/short.yaml", "--detach").stdout
    warnings = [line for line in said.splitlines() if "warning" in line]
    assert warnings == ["local: warning: the agent at work was started in another environment, and jobs get that: MOOD"]
    file = shop.root / "monkey.yaml"
    file.write_text(file.read_text().replace("idle_timeout: 60", "idle_timeout: 60, resources: {tpu: 1}"))
    shop.env["MOOD"] = "calm"
    shop.spec(TELL.format(seconds=0.01), name="short")
    said = shop.run("apply", "specs/short.yaml", "--detach", "--yes").stdout
    told = "was started with other settings; the next one gets those of monkey.yaml: resources"
    assert f"local: warning: the agent at work {told}" in said.splitlines()
    assert shop.agents == [before] and shop.states("long") == {"running": 1}


#: Three jobs, one after the other, in an environment whose setup counts its builds, and wants a file.
SETUP = """\
command: ["true"]
parameters: {{i: [1, 2, 3]}}
outputs: []
environment:
  setup: echo once >> {place}/builds; test -e {place}/cause-removed
"""


def test_a_retry_builds_an_environment_that_failed_at_once(shop: Shop) -> None:
    # Failures are remembered for a minute, so that not each of 10,000 jobs tries.
    patient(shop)
    place = shop.root.parent
    shop.spec(SETUP.format(place=place), name="sweep")

    def count_builds() -> int:
        return (place / "builds").read_text().count("once")

    shop.run("apply", code=1)
    assert shop.states("sweep") == {"failed": 3}
    assert count_builds() == 1
    (agent,) = shop.agents
    shop.run("retry", "sweep")
    shop.run("status", "-w", "sweep", code=1)
    assert shop.states("sweep") == {"failed": 3}
    assert count_builds() == 2, "one build for each order, however many jobs it opens"
    (place / "cause-removed").touch()
    shop.run("retry", "sweep")
    shop.run("status", "-w", "sweep")
    assert shop.states("sweep") == {"succeeded": 3}
    assert count_builds() == 3
    assert shop.agents == [agent], "it is the agent that remembered"
