"""The forge of the CI run that this process is part of, and the first statuses of what is applied there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import click

from monkey.apply.world.world import World
from monkey.ci_run import read_ci_run
from monkey.cli.terminal.text import flatten_text
from monkey.errors import ForgeError, MonkeyError
from monkey.forge.forge_port import Forge
from monkey.forge.open_forge import MONKEY_TOKEN, TOKENS, open_forge
from monkey.results.posting.masked_forge import MaskedForge
from monkey.results.posting.publish_news import report_statuses
from monkey.transfer.code.commit_range import list_between


class CiForge(NamedTuple):
    """A forge that masks secrets, and the repository there."""

    forge: Forge
    repository: str


def open_ci_forge(environ: Mapping[str, str]) -> CiForge:
    """Return the forge of this CI run. Raises ForgeError where there is none, or no token for it."""
    run = read_ci_run(environ)
    if run is None or run.forge is None:
        raise ForgeError(
            "expected a CI run of GitHub, Gitea, Forgejo or GitLab, found none of their variables",
            hint="run it in a job of theirs; `monkey results SWEEP --markdown` prints a report anywhere",
        )
    forge = open_forge(run, environ)
    if forge is None:
        names = " or ".join((*TOKENS[run.forge], MONKEY_TOKEN))
        raise ForgeError("expected a token for the forge, found none", hint=f"set {names} in this step's `env:`")
    return CiForge(MaskedForge(forge, environ), run.repository)


async def set_first_statuses(world: World, environ: Mapping[str, str] | None = None) -> None:
    """Set the statuses of sweeps in a CI run that has a token for them; trouble is only a warning.

    `monkey notify` sets what is not set here.
    """
    if read_ci_run(environ) is None:
        return
    try:
        forge, repository = open_ci_forge(os.environ if environ is None else environ)
    except ForgeError:
        return  # most jobs that apply need no token
    try:
        posted = await report_statuses(world, forge, repository, partial(list_between, world.project.root))
    except MonkeyError as exc:
        click.echo(flatten_text(f"warning: no status was set: {exc.message}"), err=True)
        return
    for sweep, trouble in posted.troubles.items():
        click.echo(flatten_text(f"warning: no status of {sweep} was set: {trouble.message}"), err=True)
