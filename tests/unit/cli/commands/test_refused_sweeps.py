"""What `apply` does where a sweep is refused: the others are applied, and the end says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.cli.commands.apply import ApplyOrder, _apply
from monkey.errors import SweepRefused
from monkey.protocol.sweeps.sweep_log import read_sweep
from tests.unit.apply.history.test_spec_places import Story
from tests.unit.apply.small_project import SPEC, StillFleet, opened


def test_a_sweep_that_is_refused_holds_up_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "project"
    root.mkdir()
    story = Story(root)
    other = root / "specs/other.yaml"
    other.write_text(SPEC.replace("small", "other"))
    story.commit("another sweep")

    async def main() -> None:
        async with opened(root, StillFleet(answers=[False])) as world:
            await _apply(world, ApplyOrder([], [], detach=True))
            spec = root / "specs/small.yaml"
            spec.write_text(spec.read_text().replace("7, 8", "7, 9"))
            story.commit("other rates")
            await _apply(world, ApplyOrder([], [], detach=True))
            story.step("back")
            other.write_text(SPEC.replace("small", "other").replace("1, 2, 3", "1, 2, 3, 4"))
            capsys.readouterr()
            with pytest.raises(SweepRefused, match="left as they are: 'small'"):
                await _apply(world, ApplyOrder([], [], detach=True))
            assert capsys.readouterr().out.count("refused: last applied by") == 1, "it is said once, in the plan"
            heads = {}
            for name in ("small", "other"):
                state = await read_sweep(world.at, world.keys, world.signers, name)
                heads[name] = state.revision_at
            assert heads == {"small": 2, "other": 2}
            with pytest.raises(SweepRefused, match="sweep 'small': refused: last applied by"):
                await _apply(world, ApplyOrder([], [], detach=True))
            said = capsys.readouterr()
            assert "Nothing to change." in said.out and "refused" not in said.err, "the error says it"

    asyncio.run(main())
