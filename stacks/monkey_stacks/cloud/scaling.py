"""A group of machines at a cloud: as it is, how many machines it is to have, and which of them end before. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Seconds by which a cloud may round the time at which machines end.
ROUNDED = 60.0
#: State of a machine that shut down and is still there: it does nothing more.
SHUT = "shut down"


@dataclass(frozen=True)
class GroupMember:
    """A machine of the group that is there, or about to be."""

    id: str
    type: str
    #: What it was made from (`made` of what is wanted); "" where it is not tagged.
    made: str
    #: As its cloud calls it; "" for one that is as it should be.
    state: str = ""
    #: When it was started, seconds since the epoch.
    since: float = 0.0
    #: When its cloud ends it, seconds since the epoch; None where that is the group's matter, or nothing says so.
    ends: float | None = None

    @property
    def about(self) -> str:
        """What it is, in a phrase."""
        return f"{self.type}, {self.state}" if self.state else self.type


@dataclass(frozen=True)
class MachineGroup:
    """A group, as it was a moment ago."""

    #: Machines that it is to have.
    desired: int
    members: tuple[GroupMember, ...] = ()
    #: When its machines end, seconds since the epoch; None where nothing says so.
    expires: float | None = None
    #: Ids of all that the group has, those too that are leaving it.
    counted: frozenset[str] = frozenset()
    #: The fewest and the most machines that its cloud lets it have; None where it has no such bounds.
    least: int | None = None
    most: int | None = None

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its machines, those left out that are leaving it."""
        return frozenset(each.id for each in self.members)

    def outdated(self, types: tuple[str, ...], made: str) -> list[GroupMember]:
        """Return the machines that are made from something else than new ones would be, or run no more."""
        return [each for each in self.members if each.type not in types or each.made != made or each.state == SHUT]


@dataclass(frozen=True)
class ScalingPlan:
    """What becomes of a group's machines."""

    before: int
    after: int
    #: Those that end and are made again, since they are made from something else than new ones.
    outdated: tuple[GroupMember, ...] = ()
    #: Those that end and are not, the ones with the least to do first.
    surplus: tuple[GroupMember, ...] = ()
    #: Those whose agents have left, and which should have ended themselves.
    left: tuple[GroupMember, ...] = ()

    @property
    def ending(self) -> tuple[GroupMember, ...]:
        """All that end."""
        return (*self.outdated, *self.left, *self.surplus)

    def why(self, member: GroupMember) -> str:
        """Say why a machine ends."""
        if member in self.left:
            return "its agent has left"
        if member.state == SHUT:
            return "it has shut down"
        return "it is outdated" if member in self.outdated else "it is one too many"


def plan_scaling(
    group: MachineGroup | None,
    needed: int,
    most: int,
    types: tuple[str, ...],
    made: str,
    jobs: Mapping[str, int] | None = None,
    gone: frozenset[str] = frozenset(),
) -> ScalingPlan:
    """Return what becomes of the machines where there is work for `needed` of them, and `most` there may be.

    `jobs`: how many run on each, by ids. None that has become too many for the work is ended: it leaves when it finds
    nothing to do, and until then its jobs continue. `gone`: ids of those whose agents have left.
    """
    if group is None:
        return ScalingPlan(0, min(needed, most))
    outdated = group.outdated(types, made) if needed else []
    idle = [each for each in group.members if each.id in gone and each not in outdated]
    others = set(group.members).difference(outdated, idle)
    staying = sorted(others, key=lambda each: ((jobs or {}).get(each.id, 0), each.id))
    left = max(0, group.desired - len(outdated) - len(idle))
    after = min(most, max(needed, left))
    anew = max(0, after - left)
    # What is asked for and has not come yet is no machine that could be ended.
    surplus = staying[: max(0, len(staying) - most)]
    return ScalingPlan(group.desired, after, tuple(outdated[:anew]), (*outdated[anew:], *surplus), tuple(idle))
