"""`monkey push`: send what specs need, and run nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from monkey.cli.session import in_world

if TYPE_CHECKING:
    from monkey.apply.observe import World


@click.command("push")
@click.argument("specs", nargs=-1, metavar="[SPEC]...")
@click.option("-p", "--path", "paths", multiple=True, metavar="PATH", help="Send this file or directory instead.")
def command(specs: tuple[str, ...], paths: tuple[str, ...]) -> int:
    """Upload the datasets of SPECs (default: all in specs/) to the store, and run nothing.

    What the store has is not sent again. Prints each dataset's hash, by which `dvc pull` finds it there, too.
    """
    return in_world(lambda world: _push(world, specs, paths))


async def _push(world: World, specs: tuple[str, ...], paths: tuple[str, ...]) -> int:
    from monkey.apply.push import push
    from monkey.plan.explain import size_text

    if specs and paths:
        raise click.UsageError("SPEC and --path exclude each other")
    for name, dataset, sent in await push(world, specs, paths):
        files = "1 file" if len(dataset.names) == 1 else f"{len(dataset.names):,} files"
        done = f"{size_text(sent.bytes)} in {sent.objects:,} objects uploaded" if sent.objects else "nothing to upload"
        click.echo(f"{name}: {dataset.oid}, {files}, {size_text(dataset.size)}; {done}")
    return 0
