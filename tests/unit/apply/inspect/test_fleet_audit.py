"""What an audit finds of the machines of all fleets, and what clouds have of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from monkey.apply.inspect.fleet_audit import audit_fleets, find_foreign_resources, list_tagged_resources
from monkey.apply.inspect.instances import list_instances
from monkey.errors import CorruptObject
from monkey.fleet.fleet_records import AuditFinding, ForeignResource, Instance, TaggedResource
from tests.unit.apply.small_project import Listening, StillRentedFleet, apply, opened


@dataclass
class Torn(Listening, StillRentedFleet):
    """A fleet whose state cannot be read, at a cloud that has something of it, and of others."""

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """Fail."""
        raise CorruptObject("projects/test/machines/x", "not a state", "bring it back")

    async def tagged_resources(self) -> tuple[TaggedResource, ...]:
        """Have one of each fleet's, and one of somebody's."""
        names = {"local": "i-1", "there": "i-2"}
        one, two = (None if name == self.name else ForeignResource(name, name, "of this store", "x") for name in names)
        theirs = ForeignResource("cloud", "abc", "of another store", "look there")
        return (
            TaggedResource("eu", "instance", "i-1", 1.5, one),
            TaggedResource("eu", "instance", "i-2", 1.5, two),
            TaggedResource("eu", "instance", "i-3", 0.25, theirs),
            TaggedResource("eu", "volume", "vol-1", None, theirs),
        )


def test_a_state_that_cannot_be_read_is_a_finding_and_what_is_held_is_told_once(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            world.fleets = {"local": Torn(), "there": Torn("there")}
            await world.begin()
            # A third one, that monkey.yaml does not name any more.
            await world.at.put(f"{world.keys.machines}old/state/.pulumi/stacks/test/old.json", b"garbage")
            found, held = await audit_fleets(world), await list_tagged_resources(world)
        assert [(name, each.machine) for name, each in found] == [(x, "state") for x in ("old", "local", "there")]
        assert {each.hint for _, each in found[1:]} == {"bring it back"} and "remove all below" in found[0][1].hint
        assert {each.id: (name, each.of is None) for name, each in held} == {
            "i-1": ("local", True),
            "i-2": ("there", True),
            "i-3": ("local", False),
            "vol-1": ("local", False),
        }
        [(name, told)] = find_foreign_resources(held)
        said = "2 things in eu for $0.25 an hour, and what nobody knows the price of: of another store"
        assert (name, told) == ("cloud", AuditFinding("stack abc", said, "look there"))

    asyncio.run(main())


def test_an_audit_tells_whose_machines_are_astray(root: Path) -> None:
    async def main() -> None:
        async with opened(root, Listening(machines=(Instance("gpu1", ()),))) as world:
            await world.begin()
            assert await list_instances(world) and await audit_fleets(world) == [], "nothing is to be done"
            await apply(world)
            assert await audit_fleets(world) == [("local", AuditFinding("gpu1", "astray", "look"))]

    asyncio.run(main())
