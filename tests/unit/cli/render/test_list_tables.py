"""What `destroy`, `audit` and `list instances` say and ask."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from monkey.apply.inspect.instances import InstanceRow
from monkey.cli.commands.audit import _audit
from monkey.cli.commands.destroy import _destroy
from monkey.cli.render.list_tables import format_findings, format_instances, serialize_findings
from monkey.cli.terminal.text import Terminal
from monkey.errors import FleetError, MonkeyError
from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding
from tests.unit.apply.small_project import Pen, StillFleet, apply, opened, write_project

HOSTILE = "\x1b[31mred\nsecond"


class Stuck(StillFleet):
    """A fleet that does not go."""

    async def destroy(self, say: Say) -> None:
        """Raise."""
        say("trying")
        raise FleetError("provider 'local': gpu1 does not answer", hint="is it on?")


def destroyed(root: Path, fleet: StillFleet, *names: str, yes: bool) -> int:
    """Apply the small sweep, have an agent begin a job, and destroy."""

    async def main() -> int:
        async with opened(root, fleet) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            await Pen(world).begin(jobs[0])
            return await _destroy(world, names, yes)

    write_project(root)
    return asyncio.run(main())


def test_without_a_terminal_nothing_is_destroyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    fleet = StillFleet()
    with pytest.raises(MonkeyError, match="1 running job will be stopped and queued again") as caught:
        destroyed(tmp_path, fleet, yes=False)
    assert fleet.count == 1 and "--yes" in (caught.value.hint or "")
    assert capsys.readouterr().out == "- local/this machine\n"


def test_what_was_agreed_to_is_destroyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = StillFleet()
    assert destroyed(tmp_path, fleet, "local", yes=True) == 0
    assert fleet.count == 0


def test_what_does_not_go_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FleetError, match="not everything could be taken away") as caught:
        destroyed(tmp_path, Stuck(), yes=True)
    assert caught.value.hint == "is it on?"
    said = capsys.readouterr()
    assert "local: trying" in said.out and "local: gpu1 does not answer" in said.err


def test_an_unknown_provider_is_named(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"expected a provider \(local\), found 'lap'"):
        destroyed(tmp_path, StillFleet(), "lap", yes=True)


def test_where_nothing_is_there_is_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> tuple[int, int]:
        async with opened(tmp_path) as world:
            return await _destroy(world, (), False), await _audit(world, False)

    write_project(tmp_path)
    assert asyncio.run(main()) == (0, 0)
    assert capsys.readouterr().out == "There are no machines to take away.\nNothing is astray.\n"


def test_findings_steer_no_terminal() -> None:
    found = [("lab", AuditFinding("gpu1", f"an orphan unit {HOSTILE}", "remove it"))]
    first, second = format_findings(found, Terminal())
    assert first.startswith("! lab/gpu1: an orphan unit ") and second.strip() == "remove it"
    assert "\x1b" not in first and "\n" not in first
    (told,) = serialize_findings(found)
    assert told == {"provider": "lab", "machine": "gpu1", "text": f"an orphan unit {HOSTILE}", "hint": "remove it"}


def test_instances_are_a_table() -> None:
    assert format_instances([], Terminal()) == ["There are no machines, and no agents; `monkey apply` starts them."]
    rows = [
        InstanceRow(
            "lab", "gpu1", "lab/gpu1/1", "draining", 2, 3.0, "kept alive by cron", {"cpu": 97.4, "gpus": [80, None, 3]}
        ),
        InstanceRow("lab", "gpu2", "", "not heard of", 0, None, ""),
    ]
    head, first, second = format_instances(rows, Terminal())
    assert head.split()[:4] == ["PROVIDER", "MACHINE", "AGENT", "STATE"]
    assert "draining" in first and "ago" in first
    assert head.split()[5:7] == ["CPU", "GPUS"] and "97%" in first and " 80%  3% " in first, "no agent told of memory"
    assert "none" in second and "ago" not in second
