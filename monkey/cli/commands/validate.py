"""`monkey validate`: are the specs valid? Nothing but the work tree is asked."""

from __future__ import annotations

import click

from monkey.apply.planning import plan_without_store
from monkey.cli.session import find_project, project_file_option
from monkey.cli.terminal.text import flatten_text, format_plural


@click.command("validate")
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@project_file_option
def validate_command(specs: tuple[str, ...]) -> None:
    """Check SPECs (default: all in specs/), monkey.yaml, the code and the costs, as `plan --no-store` does.

    Nothing is asked but git, and nothing is sent. Exits with 1 if anything is wrong.
    """
    plan = plan_without_store(find_project(), specs)
    jobs = sum(len(sweep.desired.table) for sweep in plan.sweeps)
    verb = "is" if len(plan.sweeps) == 1 else "are"
    click.echo(f"{format_plural(len(plan.sweeps), 'spec')} {verb} valid: {format_plural(jobs, 'job')}")
    for sweep in plan.sweeps:
        for warning in sweep.desired.warnings:
            source = f"{sweep.desired.source}:"
            said = warning if warning.startswith(source) else f"{source} {warning}"
            click.echo(flatten_text(f"warning: {said}"), err=True)
