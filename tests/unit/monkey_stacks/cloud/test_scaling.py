"""How many machines a group is to have, and which end: without AWS."""

from __future__ import annotations

import pytest

from monkey_stacks.cloud.scaling import GroupMember, MachineGroup, plan_scaling

TYPES, MADE = ("g5.xlarge", "g4dn.xlarge"), "now"


def group(desired: int, *members: str) -> MachineGroup:
    """Return a group of machines, each "id type made"."""
    found = tuple(GroupMember(*each.split()) for each in members)
    return MachineGroup(desired, found)


A, B, C = "i-a g5.xlarge now", "i-b g4dn.xlarge now", "i-c g5.xlarge now"
OLD, OTHER = "i-old g5.xlarge then", "i-other p3.2xlarge now"


@pytest.mark.parametrize(
    ("there", "needed", "most", "sizes", "outdated", "surplus"),
    [
        (None, 3, 4, (0, 3), "", ""),
        (None, 9, 4, (0, 4), "", ""),
        (group(2, A, B), 4, 4, (2, 4), "", ""),
        (group(3, A, B, C), 1, 4, (3, 3), "", ""),  # who has nothing to do leaves by himself
        (group(3, A, B, C), 9, 2, (3, 2), "", "i-a"),
        (group(4, A), 1, 2, (4, 2), "", ""),  # what has not come yet is just not waited for
        (group(2, A, OLD), 2, 4, (2, 2), "i-old", ""),
        (group(2, OTHER, OLD), 1, 4, (2, 1), "i-other", "i-old"),  # not made anew is not replaced
        (group(3, A, OLD, OTHER), 9, 2, (3, 2), "i-old", "i-other"),
        (group(2, A, OLD), 0, 4, (2, 2), "", ""),  # without work nobody comes in their place
    ],
)
def test_course(
    there: MachineGroup | None, needed: int, most: int, sizes: tuple[int, int], outdated: str, surplus: str
) -> None:
    found = plan_scaling(there, needed, most, TYPES, MADE)
    assert (found.before, found.after) == sizes
    assert [each.id for each in found.outdated] == outdated.split()
    assert [each.id for each in found.surplus] == surplus.split()


def test_of_too_many_those_go_that_have_the_least_to_do() -> None:
    found = plan_scaling(group(3, A, B, C), 9, 1, TYPES, MADE, {"i-a": 4, "i-c": 1})
    assert [each.id for each in found.ending] == ["i-b", "i-c"]


def test_nobody_counts_on_those_whose_agents_have_left() -> None:
    found = plan_scaling(group(3, A, B, OLD), 1, 4, TYPES, MADE, gone=frozenset({"i-a", "i-b", "i-old"}))
    assert (found.before, found.after) == (3, 1) and [each.id for each in found.left] == ["i-a", "i-b"]
    assert [found.why(each) for each in found.ending] == ["it is outdated", *["its agent has left"] * 2]
    assert plan_scaling(group(2, A, B), 0, 4, TYPES, MADE, gone=frozenset({"i-a"})).after == 1
