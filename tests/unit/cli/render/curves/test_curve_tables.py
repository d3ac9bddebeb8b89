"""Curves as lines of a table: where the terminal has no room for sparklines, a line says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

from monkey.apply.world.lookup import ChosenJob
from monkey.cli.render.curves.curve_tables import CurveLine, format_curves
from monkey.cli.terminal.text import Terminal
from tests.unit.web.pages import serving


def test_a_terminal_without_room_for_curves_is_told_how_much_they_need(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            view = (await page.world.reader().read()).sweeps["small"]
            curves = [CurveLine(ChosenJob(view, job), "loss", 1.0, 0.5, 9, [1.0, 0.5]) for job in page.jobs]
            *lines, said = format_curves(curves, Terminal(50))
            assert "CURVE" not in lines[0] and said.startswith("Curves do not fit: widen the terminal to ")
            needed = int(said.split(" columns")[0].split()[-1])
            assert "CURVE" in format_curves(curves, Terminal(needed))[0]
            assert "CURVE" not in format_curves(curves, Terminal(needed - 1))[0]

    asyncio.run(main())
