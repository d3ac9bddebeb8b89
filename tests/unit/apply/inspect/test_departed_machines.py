"""What agents that left say of the sweeps that they could not run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.apply.inspect.departed_machines import explain_departures, explain_last_departure
from monkey.protocol.status.agent_views import AgentView
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.job.job_table import JobTable
from monkey.spec.job.recipe import Recipe, SweepSettings

ALERT = "nets: this machine has no runtime"
MINUTE = 60.0


def agent(
    name: str, *, fleet: str = "hpc", at: float = MINUTE, alive: bool = False, unfit: bool = True, revision: int = 1
) -> AgentView:
    vitals = {"unfit": ["nets"], "unfit_revisions": {"nets": revision}} if unfit else {"unfit": []}
    alert = ALERT if unfit else None
    return AgentView(f"{fleet}/{name}/1", fleet, name, 3, at, 0, 0, vitals, alert, alive, not alive)


def of(revision: int = 1) -> dict[str, SweepState]:
    """Return a sweep whose newest revision was applied a minute after the epoch, by some clock."""
    settings, at = SweepSettings(providers=("hpc",)), "1970-01-01T00:01:00+00:00"
    newest = Revision("nets", Recipe("x", "0" * 64), settings, JobTable([], {}), at=at, applied=MINUTE)
    return {"nets": SweepState("nets", revision, newest, revision)}


def test_agents_that_say_the_same_are_one_line() -> None:
    pilots = [agent(f"pilot-{n}", at=MINUTE + n) for n in range(300)]
    assert explain_departures(pilots, of()) == [f"agent hpc/pilot-299/1 and 299 others left: {ALERT}"]
    assert explain_departures(pilots[:2], of()) == [f"agent hpc/pilot-1/1 and 1 other left: {ALERT}"]
    assert explain_departures(pilots[:1], of()) == [f"agent hpc/pilot-0/1 left: {ALERT}"]


def test_what_a_living_agent_can_run_and_what_is_older_than_the_revision_is_left_out() -> None:
    pilots = [agent("pilot-0"), agent("pilot-1")]
    assert explain_departures([*pilots, agent("pilot-2", alive=True, unfit=False)], of()) == []
    assert explain_departures([*pilots, agent("other", fleet="lab", alive=True, unfit=False)], of()) != []
    assert explain_departures([*pilots, agent("pilot-2", alive=True)], of()) != []
    assert explain_departures(pilots, of(revision=2)) == []
    assert explain_departures(pilots, {}) == []


@pytest.mark.parametrize("at", [MINUTE - 3600, MINUTE, MINUTE + 3600])
def test_no_clock_decides_of_which_revision_an_agent_spoke(at: float) -> None:
    pilot = agent("pilot-0", at=at, revision=2)
    assert explain_departures([pilot], of(revision=2)) and not explain_departures([pilot], of(revision=3))
    assert explain_last_departure([pilot], "hpc", of(revision=2)["nets"]) == ALERT
    assert not explain_last_departure([pilot], "hpc", of(revision=3)["nets"])
    reread = agent("pilot-1", alive=True, revision=1)
    assert not explain_last_departure([pilot, reread], "hpc", of(revision=2)["nets"]), "it has yet to read the newest"


@pytest.mark.parametrize(
    ("late", "told", "last"), [(-1.0, False, False), (1.0, True, False), (61.0, True, True), (3600.0, True, True)]
)
def test_of_agents_of_the_version_before_times_decide(late: float, told: bool, last: bool) -> None:
    before = replace(agent("pilot-0", at=MINUTE + late), vitals={"unfit": ["nets"]})
    assert bool(explain_departures([before], of(revision=2))) is told
    assert bool(explain_last_departure([before], "hpc", of(revision=2)["nets"])) is last, "it may not have read it yet"
    other = replace(before, vitals={"unfit": ["other"]})
    assert not explain_departures([other], of()) and not explain_last_departure([other], "hpc", of()["nets"])
