"""Which files of a job are its outputs."""

from __future__ import annotations

from pathlib import Path

from monkey_agent.execution.workspace import Workspaces
from monkey_agent.uploads.job_outputs import MAX_LIST_BYTES, find_outputs

#: A path's directories: names as long as file systems have them.
DEEP = "/".join(["d" * 250] * 2)


def test_outputs_that_an_end_cannot_list_are_not_kept_and_are_counted(tmp_path: Path) -> None:
    space = Workspaces(str(tmp_path)).take("a" * 16, 1)
    place = Path(space.outputs, DEEP)
    place.mkdir(parents=True)
    count = MAX_LIST_BYTES // 800
    for n in range(count):
        (place / f"{n:0240d}").touch()
    said, lost = list[str](), list[OSError]()
    found = find_outputs(space, None, None, said.append, lost.append)
    listed = sum(len(path) + 64 for path in found)
    assert MAX_LIST_BYTES - 2_000_000 < listed <= MAX_LIST_BYTES
    assert said == [f"{count - len(found):,} of {count:,} outputs are not kept: a record has no room for more"]
