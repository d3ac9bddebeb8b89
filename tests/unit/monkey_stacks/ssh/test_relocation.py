"""Which hosts are moved and which stay as they were: by the state, what is wanted, and looks at new places."""

from __future__ import annotations

from typing import Any

from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.ssh.host_resource import AWAY, DRIFT, TROUBLE
from monkey_stacks.ssh.relocation import add_move_trouble, find_hindered, find_moving, keep_hindered

NO_RIGHT = "h2: no right to write to /big\nhint: name another place"


def inputs(host: str, workdir: str, slots: int = 1) -> dict[str, Any]:
    """Return inputs of a host."""
    place = {"host": host, "workdir": workdir, "store": "s3://b", "project": "p", "fleet": "lab"}
    return {**place, "max_slots": slots}


def test_a_host_that_cannot_be_moved_stays_as_it_is() -> None:
    """Or Pulumi would take away what works there, jobs and all, before it finds that the new place will not do."""
    names = ("h1", "h2", "h3")
    known = {name: StateResource("Host", name, f"{name}:~/m", inputs(name, "~/m")) for name in names}
    wanted = [inputs("h1", "/big"), inputs("h2", "/big", 2), inputs("h3", "~/m", 2), inputs("h4", "/big")]
    assert find_moving(known, wanted) == ["h1", "h2"], "another number of slots is no other place, and h4 is new"
    looked = {"h1": {"about": "kept alive by cron"}, "h2": {DRIFT: NO_RIGHT, AWAY: True}}
    assert find_hindered(looked) == {"h2": NO_RIGHT}
    assert keep_hindered(wanted, known, find_hindered(looked)) == [wanted[0], known["h2"].inputs, wanted[2], wanted[3]]


def test_what_hinders_a_move_is_told_of_where_it_goes() -> None:
    here = {DRIFT: "", AWAY: False, TROUBLE: "full"}
    assert add_move_trouble({"about": "kept alive"}, here)[TROUBLE] == "", "it leaves the full disk"
    assert add_move_trouble({DRIFT: "no right", AWAY: True}, here) == {**here, TROUBLE: "no right"}
