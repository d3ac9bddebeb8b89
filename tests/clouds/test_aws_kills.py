"""kill -9 of whoever applies, of Pulumi and of its plugin, before a call of AWS's and after it: nothing is left behind.

AWS gives ids to what it makes. What was made before anybody heard of it is found again all the same.

MONKEY_LONG=1 cuts at every call there is: `-k before`, `-k after`.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.clouds.account import Account
from tests.clouds.calls import CHANGING, MAKING, TAKING
from tests.clouds.cli import STORE, group, project, rent, run
from tests.clouds.renter import Renter
from tests.clouds.wire import Call, Hold
from tests.stacks.desk import leftovers

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("MONKEY_LONG"))
#: Seconds for a process to come to where it is killed, on a machine that does much else.
PATIENCE = 300
#: What our own tag is for.
TAG = ("monkey:project", "shop")
APPLY, DESTROY = ("apply", "--detach", "--yes"), ("destroy", "--yes")


def cut(aws: Account, hold: Hold, process: subprocess.Popen[str], running: Callable[[], list[int]]) -> str:
    """Kill a process and all that it started at the call that is held; returns it, "" where it ended before."""
    until(lambda: hold.reached.is_set() or process.poll() is not None, "a call comes", PATIENCE)
    ended = process.poll() is not None
    while pids := [pid for pid in {process.pid, *running()} if pid != process.pid or process.poll() is None]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    said = process.communicate()
    aws.wire.release()
    assert not ended or not process.returncode, said
    if ended:
        return ""
    assert hold.call is not None
    return f"{'after' if hold.after else 'before'} {hold.call.action}"


def _of_aws(call: Call) -> bool:
    return call.service != "s3"


@pytest.fixture
def shop(aws: Account, require: Callable[[str], str], tmp_path: Path) -> Iterator[Shop]:
    """Return a project with work for two machines."""
    require("pulumi")
    shop = project(aws, tmp_path, jobs=4)
    yield shop
    shop.kill_all()


def whole(aws: Account, renter: Renter, before: dict[str, str], kind: str) -> None:
    """Hold what AWS has against the state, one to one; and the group to what was asked for."""
    named = {"aws:iam/role:Role": "role ", "aws:iam/instanceProfile:InstanceProfile": "profile "}
    bare = ("aws:iam/rolePolicy:RolePolicy", "aws:ec2/routeTableAssociation:RouteTableAssociation")
    known = renter.known().values()
    assert not [each.name for each in known if each.interrupted]
    ours = {f"{named.get(each.type, '')}{each.id}" for each in known if each.type not in bare}
    there = aws.there(*TAG)
    assert {id_ for id_, what in there.items() if what != "Instances"} == ours
    # Nothing of it has no tag; what cannot have one belongs to what has.
    made = {id_ for id_, what in aws.there().items() if what != "ScheduledUpdateGroupActions"}
    assert made - before.keys() == there.keys()
    tables = aws.client("ec2").describe_route_tables(Filters=[{"Name": f"tag:{TAG[0]}", "Values": [TAG[1]]}])
    joined = {each["RouteTableAssociationId"] for table in tables["RouteTables"] for each in table["Associations"]}
    assert joined == {each.id for each in known if each.type == bare[1]}
    found = group(aws)
    machines = {each["InstanceId"] for each in found["Instances"]}
    assert machines == {id_ for id_, what in there.items() if what == "Instances"}
    assert len(machines) == found["DesiredCapacity"] and {each["InstanceType"] for each in found["Instances"]} == {kind}
    assert len(aws.client("autoscaling").describe_scheduled_actions()["ScheduledUpdateGroupActions"]) == 1


def test_nothing_is_left_behind_by_who_was_killed_at_random_calls(shop: Shop, aws: Account) -> None:
    seed = random.SystemRandom().randrange(10_000)
    dice, renter = random.Random(seed), Renter(STORE)
    rent(shop, aws.image())
    before, half = aws.there(), MAKING.total() // 2

    def kill(command: tuple[str, ...], calls: int) -> None:
        hold = aws.wire.hold(dice.randrange(1, calls), after=dice.random() < 0.6, chosen=_of_aws)
        print(f"seed {seed}: {(found := cut(aws, hold, shop.start(*command), shop.processes))}")
        assert found, "it ended before"

    kill(APPLY, half)
    kill(APPLY, half)
    run(shop, *APPLY)
    whole(aws, renter, before, "m5.large")
    kill(DESTROY, TAKING.total())
    run(shop, *DESTROY)
    assert aws.there() == before and not renter.known()


@pytest.mark.skipif(not LONG, reason="MONKEY_LONG=1: every call of a fleet's life, ten minutes")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_nothing_is_left_behind_by_who_was_killed_at_every_call(
    renter: Renter, aws: Account, tmp_path: Path, after: bool
) -> None:
    """Whoever begins anew is killed at the next call, so that each cut comes on top of all those before."""
    before = aws.there()
    steps = [(MAKING, 4, "m5.large"), (CHANGING, 4, "m5.xlarge"), (TAKING, None, "m5.xlarge")]
    for calls, jobs, kind in steps:
        renter.entry["instance_type"] = kind
        found = _cut_each(renter, aws, tmp_path, jobs, calls, after=after)
        if jobs:
            whole(aws, renter, before, kind)
        # What is found again has some of it already, which is not asked for again: a template its newest version.
        assert calls.keys() - found.keys() <= {"ModifyLaunchTemplate"}, "not every call was cut"
    assert aws.there() == before and not renter.known()


def _cut_each(
    renter: Renter, aws: Account, base: Path, jobs: int | None, calls: Counter[str], *, after: bool
) -> Counter[str]:
    """Kill it again and again until it ends by itself; returns the actions at which it was cut."""
    found = Counter[str]()
    for tries in range(2 * calls.total()):
        hold = aws.wire.hold(1, after=after, chosen=_another(calls, found, after=after))
        said = cut(aws, hold, renter.start(jobs), lambda: [int(line.split()[0]) for line in leftovers(base)])
        print(f"{tries}: {said or 'it ended'}", flush=True)
        if not said:
            return found
        found[said.split()[1]] += 1
    raise AssertionError("it never came to its end")


def _another(calls: Counter[str], cut: Counter[str], *, after: bool) -> Callable[[Call], bool]:
    """Return what chooses the next call of which there are more than were cut.

    What was cut off before it was carried out is asked for again: it is let through, once for each cut.
    """
    seen = Counter[str]()

    def chosen(call: Call) -> bool:
        seen[call.action] += _of_aws(call)
        return seen[call.action] > (0 if after else cut[call.action]) and cut[call.action] < calls[call.action]

    return chosen
