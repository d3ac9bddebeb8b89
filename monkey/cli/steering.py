"""What pause, resume, cancel and retry say when they are done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monkey.cli.render.words import plural

if TYPE_CHECKING:
    from monkey.apply.operate import Done


def report(done: Done, *, did: str, already: str, then: str) -> None:
    """Print what an order came to, and what may be done next."""
    if not done.changed:
        click.echo(f"{done.sweep} {already}; nothing was done.")
        return
    running = f", {done.running:,} of them running" if done.running else ""
    click.echo(f"{done.sweep}: {did} ({plural(done.jobs, 'job')}{running}). {then}.")
