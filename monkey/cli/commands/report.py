"""`monkey report`: the page of some sweeps in one file of HTML, to keep or to send."""

from __future__ import annotations

from pathlib import Path

import click

from monkey.atomic_write import write_named_file
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.cli.terminal.text import flatten_text, format_plural
from monkey.errors import MonkeyError
from monkey.web.report.report_data import gather_report
from monkey.web.report.report_file import build_report


@click.command("report")
@click.argument("sweeps", metavar="SWEEP…", nargs=-1, required=True, shell_complete=complete_sweep_names)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    metavar="FILE",
    help="Write this file; by default report.html.",
)
def report_command(sweeps: tuple[str, ...], output: Path) -> None:
    """Write the page of `monkey web` for each SWEEP into one file of HTML.

    A browser opens it without a server or the network. It has tables, curves, failures and jobs as they are now, and
    of logs the ends of failed jobs.
    """
    data = run_in_world(lambda world: gather_report(world, sweeps))
    # Outside of the event loop, where Ctrl-C ends whatever is being computed.
    body = build_report(data)
    try:
        write_named_file(output, body)
    except OSError as exc:
        raise MonkeyError(f"{output} cannot be written: {exc.strerror}", hint="name another file by -o") from exc
    curves = f"{format_plural(data.count_curves(), 'curve')} of at most {data.points} points"
    size = f"{len(body) / 1e6:.1f} MB"
    click.echo(flatten_text(f"{output} written: {format_plural(data.jobs, 'job')}, {curves}, {size}."))
