"""`monkey resume`."""

from __future__ import annotations

import click

from monkey.cli.session import in_world, names_complete
from monkey.cli.steering import report


@click.command("resume")
@click.argument("sweep", shell_complete=names_complete)
def command(sweep: str) -> None:
    """Go on with SWEEP, which was paused or cancelled."""
    from monkey.apply.operate import resume

    done = in_world(lambda world: resume(world, sweep))
    report(done, did="goes on", already="is neither paused nor cancelled", then=f"`monkey status -w {sweep}` watches")
