"""The forge to which news of a project go, and the first statuses of what a CI run applies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from monkey.apply.trust.endpoints import check_endpoints, list_forge_endpoints
from monkey.apply.world.world import World
from monkey.ci_run import read_ci_run
from monkey.cli.terminal.text import flatten_text
from monkey.errors import FleetError, ForgeError, MonkeyError
from monkey.fleet.secret_values import SecretValues
from monkey.forge.open_forge import MONKEY_TOKEN, OpenedForge, open_project_forge
from monkey.results.posting.masked_forge import MaskedForge
from monkey.results.posting.publish_news import report_statuses
from monkey.transfer.code.commit_range import list_between
from monkey.transfer.code.git_files import find_work_tree, read_remote_url

if TYPE_CHECKING:
    from monkey.spec.project.project import Project


def open_news_forge(project: Project, environ: Mapping[str, str]) -> OpenedForge:
    """Return where news of a project are posted: at the forge of this CI run, or else at the project's own.

    The token is the environment's; outside of CI, it may be the secret that `notify:` names for agents. Raises
    ForgeError, EndpointRefused.
    """
    run, remote, token, place = read_ci_run(environ), "", "", ""
    if run is None or run.forge is None:
        check_endpoints(project, list_forge_endpoints(project))
        remote = read_remote_url(top) if (top := find_work_tree(project.root)) else ""
        with suppress(FleetError):  # then it is the environment's, or there is none
            named = [each.to for each in project.notify if each.kind == "forge"]
            token = "".join(SecretValues(environ).get(named).values())
            place = "".join(f"the secret {name} of `notify:`" for name in named)
    forge, repository = open_project_forge(project.forge, remote, environ, token, place)
    return OpenedForge(MaskedForge(forge, {**environ, MONKEY_TOKEN: token} if token else environ), repository)


async def set_first_statuses(world: World, environ: Mapping[str, str] | None = None) -> None:
    """Set the statuses of sweeps in a CI run that has a token for them; trouble is only a warning.

    `monkey notify` sets what is not set here.
    """
    run = read_ci_run(environ)
    if run is None or run.forge is None:
        return
    try:
        forge, repository = open_news_forge(world.project, os.environ if environ is None else environ)
    except ForgeError:
        return  # most jobs that apply need no token
    try:
        posted = await report_statuses(world, forge, repository, partial(list_between, world.project.root))
    except MonkeyError as exc:
        click.echo(flatten_text(f"warning: no status was set: {exc.message}"), err=True)
        return
    for sweep, trouble in posted.troubles.items():
        click.echo(flatten_text(f"warning: no status of {sweep} was set: {trouble.message}"), err=True)
    if posted.away is not None:
        click.echo(flatten_text(f"warning: not all statuses were set: {posted.away.message}"), err=True)
