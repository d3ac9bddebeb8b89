"""A fleet at AWS whose state somebody removed: what is there is told of, is looked after, and can be taken away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monkey.fleet.fleet_records import FleetWork
from monkey_stacks.cloud.cloud_fleet import CloudFleet
from monkey_stacks.cloud.scaling import MachineGroup
from tests import services
from tests.clouds.account import Account
from tests.clouds.renter import FLEET, PROJECT, Renter

pytestmark = pytest.mark.slow


def lose(renter: Renter, aws: Account) -> None:
    """Remove all of the state, as a second client."""
    s3, prefix = aws.client("s3"), f"sweeps/projects/{PROJECT}/machines/{FLEET}/state/"
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=services.BUCKET, Prefix=prefix)["Contents"]]
    s3.delete_objects(Bucket=services.BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
    assert renter.known() == {}


def ends(aws: Account) -> list[tuple[int, int]]:
    """Return to how many machines groups are cut down at their time, as AWS has it."""
    actions = aws.client("autoscaling").describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    return [(each["MinSize"], each["DesiredCapacity"]) for each in actions]


async def touched(fleet: CloudFleet, work: FleetWork) -> tuple[bool, bool]:
    """Preview, then converge; returns whether machines were begun by each."""
    await fleet.preview(work)
    before = fleet.touched
    await fleet.converge(work, lambda text: None)
    return before, fleet.touched


class EndingGroup:
    """A cloud whose group wants no machine any more, and has some for a minute yet."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def find_group(self) -> MachineGroup:
        return replace(self._api.find_group(), desired=0)


async def leave_idle(fleet: CloudFleet) -> tuple[int, int, list[str]]:
    """Have an idle fleet removed: as it is, then while its machines end; return how many a plan sees, and the words."""
    said: list[str] = []
    await fleet.destroy(said.append, idle=True)
    there = await fleet.preview(FleetWork(0))
    ending: Any = EndingGroup(fleet.api)
    fleet.api = ending
    await fleet.destroy(said.append, idle=True)
    return there.before, (await fleet.preview(FleetWork(0))).before, said


def test_what_is_there_though_the_state_is_lost(renter: Renter, aws: Account) -> None:
    before = aws.there()
    assert renter.run(lambda fleet: touched(fleet, renter.work(None))) == (False, True)
    lose(renter, aws)
    told = renter.run(CloudFleet.instances)
    assert {each.about for each in told} == {"no apply has written it down"} and len(told) > 10
    assert len([each for each in renter.preview().changes if each.op == "delete"]) == len(told)
    mark = len(aws.wire.changes)
    renter.converge()
    changes = aws.wire.changes[mark:]
    assert "PutScheduledUpdateGroupAction" in changes[: changes.index("SetDesiredCapacity")] and ends(aws) == [(0, 0)]
    assert not renter.run(lambda fleet: fleet.audit(busy=False))
    before_end, while_ending, said = renter.run(leave_idle)
    assert before_end == while_ending > 0, "a plan that removes what is left waits for them"
    later = "a later apply removes the rest"
    assert said == [f"another apply has asked for machines: {later}", f"its machines are still ending: {later}"]
    lose(renter, aws)
    aws.wire.refuse("DescribeVpcs", "UnauthorizedOperation", "You are not authorized to do this.", 403, times=1)
    (unsure,) = renter.run(CloudFleet.instances)
    assert unsure.about.startswith("it is not known whether there is one: AWS does not permit it")
    renter.destroy()
    assert aws.there() == before and renter.run(CloudFleet.instances) == ()
