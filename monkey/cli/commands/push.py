"""`monkey push`: send what specs need, and run nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monkey.cli.push_report import format_push, push_paths
from monkey.cli.session import find_project, project_file_option, run_in_world

if TYPE_CHECKING:
    from monkey.apply.push_datasets import PushedDataset


@click.command("push")
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@click.option(
    "-p",
    "--path",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Upload this path instead; may be repeated.",
)
@project_file_option
def push_command(specs: tuple[str, ...], paths: tuple[str, ...]) -> int:
    """Upload the datasets of SPECs (default: all in specs/) to the store; runs no job.

    Files that the store has are not sent again. Prints each dataset's hash, by which `dvc pull` finds it, too.
    """
    if specs and paths:
        raise click.UsageError("SPEC and --path exclude each other")
    click.echo(format_push(push_paths(paths, find_project()) if paths else _specs(specs)))
    return 0


def _specs(specs: tuple[str, ...]) -> list[PushedDataset]:
    from monkey.apply.push_datasets import push_specs

    return run_in_world(lambda world: push_specs(world, specs))
