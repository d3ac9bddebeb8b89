"""`monkey notify`: what no one has posted yet of sweeps, at the forge that CI runs for, or that monkey.yaml names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial

import click

from monkey.apply.previews import end_previews
from monkey.apply.world.world import World, open_world
from monkey.cli.review.sweep_statuses import open_news_forge
from monkey.cli.session import project_file_option, run_in_world
from monkey.cli.terminal.text import flatten_text
from monkey.concurrency import run_detached_call
from monkey.errors import ForgeAway, ForgeError, SigningError, StoreError
from monkey.results.posting.publish_news import PostedNews, publish_news
from monkey.spec.project.project import Project
from monkey.transfer.code.commit_range import list_between


@click.command("notify")
@project_file_option
def notify_command() -> int:
    """Post what came of sweeps to their pull requests, and set the statuses of their commits.

    Previews of pull requests that are no longer open are cancelled.

    For a job that CI starts on a schedule, or with each push: it posts what no one has posted yet. `monkey sync
    --notify` does it, too. Elsewhere, such as in cron, the forge is that of `forge:` in monkey.yaml, or of the remote.
    """
    posted, repository = run_in_world(_publish, remember=False)
    for remote, count in posted.elsewhere.items():
        _warn_elsewhere(count, remote, repository)
    return _tell(posted)


def publish_project_news(project: Project, say: Callable[[str], None]) -> None:
    """Do what `monkey notify` does, for a sync of this project, and say which comments there are.

    Raises MonkeyError where something is not posted.
    """

    async def inside() -> PostedNews:
        async with open_world(project, unattended=True) as world:
            return (await _publish(world))[0]

    posted = asyncio.run(inside())
    for sweep, url in posted.comments.items():
        say(f"{sweep}: {posted.outcomes[sweep].verdict}, posted at {url}")
    if (trouble := posted.away or next(iter(posted.troubles.values()), None)) is not None:
        raise trouble


async def _publish(world: World) -> tuple[PostedNews, str]:
    """Return what was posted, and the repository at the forge."""
    at = open_news_forge(world.project, os.environ)
    posted = await publish_news(world, at.forge, at.repository, find_between=partial(list_between, world.project.root))
    if posted.away is not None:
        return posted, at.repository
    try:
        # Before the previews: one that is opened by then is open.
        pulls = {pull.number for pull in await run_detached_call(at.forge.list_open_pulls)}
        for ended in await end_previews(world, pulls):
            click.echo(flatten_text(f"{ended.view.state.name}: cancelled, as its pull request is closed"))
    except ForgeAway as exc:
        posted.away = exc
    except (ForgeError, StoreError, SigningError) as exc:
        click.echo(
            flatten_text(f"warning: previews of closed pull requests were not looked for: {exc.message}"), err=True
        )
    return posted, at.repository


def _warn_elsewhere(count: int, remote: str, repository: str) -> None:
    said = f"{count} sweeps were" if count > 1 else "1 sweep was"
    click.echo(
        flatten_text(f"warning: {said} applied from {remote}, which is not {repository} at the forge: not posted"),
        err=True,
    )
    click.echo(
        flatten_text(
            "hint: apply from a clone of the forge's repository; or name the right one as `repository` of `forge:` in "
            "monkey.yaml"
        ),
        err=True,
    )


def _tell(posted: PostedNews) -> int:
    """Print what was posted. Raises why the forge was left, or the first trouble where nothing could be posted."""
    for sweep, outcome in posted.outcomes.items():
        comment = f": {posted.comments[sweep]}" if sweep in posted.comments else ""
        click.echo(flatten_text(f"{sweep}: {outcome.verdict} ({outcome.text}){comment}"))
    fatal = posted.away or (next(iter(posted.troubles.values()), None) if not posted.outcomes else None)
    for sweep, trouble in posted.troubles.items():
        if trouble is not fatal:
            click.echo(flatten_text(f"warning: {sweep}: {trouble.message}"), err=True)
    if fatal is not None:
        raise fatal
    if not posted.outcomes:
        click.echo("No news.")
    return 0
