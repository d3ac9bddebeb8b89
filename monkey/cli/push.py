"""`monkey push`: send what specs need, and run nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monkey.cli.bars import Bars
from monkey.cli.session import in_world, project

if TYPE_CHECKING:
    from monkey.apply.push import Pushed


@click.command("push")
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@click.option("-p", "--path", "paths", multiple=True, metavar="PATH", help="Send this file or directory instead.")
def command(specs: tuple[str, ...], paths: tuple[str, ...]) -> int:
    """Upload the datasets of SPECs (default: all in specs/) to the store, and run nothing.

    What the store has is not sent again. Prints each dataset's hash, by which `dvc pull` finds it there, too.
    """
    if specs and paths:
        raise click.UsageError("SPEC and --path exclude each other")
    pushed = _paths(paths) if paths else _specs(specs)
    click.echo("\n".join(_line(one) for one in pushed) or "There are no datasets.")
    return 0


def _specs(specs: tuple[str, ...]) -> list[Pushed]:
    from monkey.apply.push import push_specs

    return in_world(lambda world: push_specs(world, specs))


def _paths(paths: tuple[str, ...]) -> list[Pushed]:
    from monkey.apply.push import push_paths

    with Bars() as bars:
        return push_paths(project(), paths, bars.begin)


def _line(one: Pushed) -> str:
    from monkey.plan.sizes import size_text

    files = "1 file" if len(one.dataset.names) == 1 else f"{len(one.dataset.names):,} files"
    objects = "1 object" if one.objects == 1 else f"{one.objects:,} objects"
    done = f"{size_text(one.bytes)} in {objects} uploaded" if one.objects else "nothing to upload"
    return f"{one.name}: {one.dataset.oid}, {files}, {size_text(one.dataset.size)}; {done}"
