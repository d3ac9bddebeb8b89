"""`monkey sync`: follow a branch of a git repository."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from monkey.apply.sync.sync_loop import run_sync
from monkey.apply.sync.sync_order import (
    SyncOrder,
    check_sync_directory,
    locate_path,
    locate_remote,
    locate_sync_directory,
)
from monkey.apply.sync.systemd_unit import compose_unit
from monkey.apply.world.world import World
from monkey.cli.commands.notify import publish_project_news
from monkey.cli.session import find_project_file, project_file_option, run_in_world
from monkey.cli.terminal.text import flatten_text, format_plural
from monkey.errors import MonkeyError
from monkey.protocol.status.sync_beat import forget_ended_syncs
from monkey.spec.project.project import STORE_VARIABLE
from monkey.spec.yaml.mistakes import MistakesError
from monkey.spec.yaml.units import parse_duration


@click.command("sync")
@click.argument("remote", required=False)
@click.option("--branch", default="main", show_default=True, help="The branch that sweeps follow.")
@click.option("--path", default="", metavar="DIR", help="The project's directory in the repository.")
@click.option("--interval", default="60s", show_default=True, metavar="TIME", help="Time between looks at the remote.")
@click.option("--once", is_flag=True, help="Look once; exit with 1 if anything was refused or failed.")
@click.option(
    "--rewrite",
    type=click.Choice(["refuse", "follow"]),
    default="refuse",
    show_default=True,
    help="What to do if the branch's history was rewritten.",
)
@click.option("--data", multiple=True, metavar="DIR", help="Take datasets from there, outside of the repository, too.")
@click.option("--prune", is_flag=True, help="Cancel sweeps whose spec left the branch.")
@click.option("--previews", is_flag=True, help="Preview the branch's pull requests, within its `previews:`.")
@click.option("--notify", is_flag=True, help="Post results at the forge, as `monkey notify` does, once a minute.")
@click.option("--print-unit", is_flag=True, help="Print a systemd unit that runs this sync, and end.")
@click.option("--forget", is_flag=True, help="Remove the heartbeats of syncs that have ended or are dead, and end.")
@click.option("--directory", metavar="DIR", help="Keep the clone there.  [default: in the user's state]")
@project_file_option
def sync_command(remote: str | None, branch: str, once: bool, print_unit: bool, forget: bool, **options: Any) -> int:
    """Apply each commit of a branch of REMOTE (default: this checkout's origin) as it comes.

    This is `monkey apply --detach` without a person: a broken commit is refused whole, and what people paused or
    cancelled stays so. Everybody who can push to the branch runs code on the machines.
    """
    if forget:
        run_in_world(_forget)
        return 0
    start = Path.cwd()
    found, checkout = locate_remote(remote, start)
    path = options["path"] or locate_path(checkout, start)
    at = Path(options["directory"]).expanduser() if options["directory"] else locate_sync_directory(found, branch, path)
    if options["directory"]:
        check_sync_directory(at)
    order = SyncOrder(
        remote=found,
        branch=branch,
        interval=0.0 if once else _parse_interval(options["interval"]),
        directory=at.absolute(),
        path=path,
        rewrite=options["rewrite"] == "follow",
        prune=options["prune"],
        previews=options["previews"],
        data=tuple(Path(place).expanduser().absolute() for place in options["data"]),
        project_file=find_project_file(),
        store=os.environ.get(STORE_VARIABLE),
        checkout=checkout,
    )
    if print_unit:
        click.echo(_compose_unit(order, remote, options), nl=False)
        return 0
    return run_sync(order, _say, partial(publish_project_news, say=_say) if options["notify"] else None)


async def _forget(world: World) -> None:
    """Remove what status shows of syncs that are no more."""
    forgotten, others = await forget_ended_syncs(world.at, world.keys, time.time())
    for beat in forgotten:
        click.echo(flatten_text(f"forgot the sync of branch {beat.branch} of {beat.remote} on {beat.host}"))
    if others:
        click.echo(f"removed {format_plural(others, 'object')} in the place of heartbeats")
    if not forgotten and not others:
        click.echo("Nothing to forget: no sync has ended, and none is dead.")


def _compose_unit(order: SyncOrder, remote: str | None, options: Mapping[str, Any]) -> str:
    """Return the unit for this command line. Raises MonkeyError for a remote whose password everybody could read."""
    if order.remote != order.shown and order.remote.startswith("http"):
        raise MonkeyError(
            "the remote's URL holds a user or a password, and everybody can read a unit",
            hint="name it without them, and let git know them by a credential helper",
        )
    arguments = [remote] if remote is not None else []
    arguments += ["--branch", order.branch, "--interval", options["interval"], "--rewrite", options["rewrite"]]
    for name in ("path", "directory"):
        arguments += [f"--{name}", options[name]] if options[name] else []
    arguments += [word for place in order.data for word in ("--data", str(place))]
    arguments += [f"--{name}" for name in ("prune", "previews", "notify") if options[name]]
    arguments += ["--project-file", str(order.project_file.absolute())] if order.project_file else []
    return compose_unit(arguments, Path.cwd(), f"branch {order.branch} of {order.shown}")


def _parse_interval(text: str) -> float:
    try:
        return parse_duration(text)
    except MistakesError as exc:
        raise MonkeyError(f"--interval: {exc.mistakes[0].message}", hint="write it like 60s, or 5m") from exc


def _say(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {flatten_text(text)}")
