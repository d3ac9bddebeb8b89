"""`monkey doctor`: is all there that monkey needs, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Sequence

import click

from monkey.apply.inspect.doctor_checks import DoctorCheck, check_project
from monkey.cli.session import find_project, json_option, project_file_option
from monkey.cli.terminal.text import detect_terminal, dump_json, flatten_text, format_plural


@click.command("doctor")
@json_option
@project_file_option
def doctor_command(as_json: bool) -> int:
    """Check specs, store, agents, Pulumi, clouds and InfluxDB, and suggest a fix for each problem.

    Writes and removes an object in the store, and empty files where jobs write; changes nothing else. Exits with 1 if
    there is a problem.
    """
    import asyncio
    from dataclasses import asdict

    here = find_project()
    found: list[DoctorCheck] = []

    async def look() -> None:
        async for check in check_project(here):
            found.append(check)
            if not as_json:
                click.echo(_line(check))

    asyncio.run(look())
    if as_json:
        click.echo(dump_json([asdict(check) for check in found], indent=2))
    else:
        click.echo(_sum(found))
    return 1 if any(check.wrong for check in found) else 0


def _line(check: DoctorCheck) -> str:
    to = detect_terminal()
    mark, colour = ("!", "yellow") if check.wrong else ("✓", "green")
    line = to.paint(f"{mark} {check.about}: {flatten_text(check.text)}", colour if check.wrong else "")
    return line + (to.paint(f"\n      {flatten_text(check.hint)}", "dim") if check.hint else "")


def _sum(found: Sequence[DoctorCheck]) -> str:
    wrong = sum(check.wrong for check in found)
    return f"\n{format_plural(wrong, 'thing')} to mend." if wrong else "\nAll is well."
