"""`monkey web`: the page of sweeps, jobs and machines in a browser."""

from __future__ import annotations

import asyncio
import html
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import click

from monkey.apply.world.lookup import find_sweep_or_job
from monkey.apply.world.world import World
from monkey.cli.links.page_link import PageLink, publish_page_link
from monkey.cli.session import complete_sweep_names, project_file_option, run_in_world
from monkey.errors import MonkeyError
from monkey.web.page_guard import PageGuard
from monkey.web.page_server import serve_page

#: Characters that a token of a file must have: others could be guessed.
_SHORTEST = 20


@click.command("web")
@click.argument("what", metavar="[SWEEP|JOB]", required=False, shell_complete=complete_sweep_names)
@click.option("--no-browser", is_flag=True, help="Print the link only.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Listen here (default: any port).")
@click.option("--base-url", default="", metavar="URL", help="The page's address behind a proxy; it is read-only then.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE", help="Read the token from FILE, for --base-url."
)
@project_file_option
def web_command(what: str | None, no_browser: bool, port: int, base_url: str, token_file: Path | None) -> int:
    """Show sweeps, jobs, curves, logs and machines in a browser, live, until Ctrl-C.

    Opens SWEEP or JOB if one is named. The page answers on this machine alone, and needs the link.
    """
    guard = PageGuard(base_url=_check_base_url(base_url))
    guard.token = _read_token(token_file) if token_file else guard.token
    try:
        return run_in_world(lambda world: _serve(world, guard, what, port, browser=not (no_browser or base_url)))
    except KeyboardInterrupt:  # how one leaves; there is nothing to say
        return 0


async def _serve(world: World, guard: PageGuard, what: str | None, port: int, *, browser: bool) -> int:
    sweep, job = await _locate(world, what) if what else ("", "")
    try:
        async with AsyncExitStack() as kept:
            address = await kept.enter_async_context(serve_page(world, guard, port))
            page = PageLink(address, guard.token)
            kept.enter_context(publish_page_link(world, page))
            link = page.point(sweep, job)
            click.echo(link)
            click.echo("Ctrl-C ends it. The link is a key to this project: keep it to yourself.", err=True)
            if browser:
                # Without a place for the file, there is the link.
                with suppress(OSError):
                    await asyncio.to_thread(webbrowser.open, kept.enter_context(write_redirect(link)))
            await asyncio.Event().wait()
    except OSError as exc:
        raise MonkeyError(f"cannot listen at port {port}: {exc.strerror}", hint="choose another `--port`") from exc
    return 0


@contextmanager
def write_redirect(link: str) -> Iterator[str]:
    """Write a file that leads a browser to the link, and yield its address: all users see a browser's arguments.

    The file is for this user alone, and is removed at the end. Raises OSError.
    """
    with tempfile.TemporaryDirectory(prefix="monkey-web-", ignore_cleanup_errors=True) as directory:
        file, to = Path(directory, "open.html"), html.escape(link)
        file.touch(mode=0o600)
        file.write_text(
            f'<!DOCTYPE html>\n<meta charset="utf-8">\n<meta http-equiv="refresh" content="0; url={to}">\n'
            f'<title>monkey</title>\n<p><a href="{to}">To the page</a></p>\n'
        )
        yield file.as_uri()


async def _locate(world: World, what: str) -> tuple[str, str]:
    """Return a sweep and a job of it; "" for the job, if a sweep is named. Raises NotFound."""
    found = find_sweep_or_job(await world.reader().read(), what)
    return found.view.state.name, found.job or ""


def _read_token(file: Path) -> str:
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise MonkeyError(f"--token-file {file}: cannot be read: {exc}", hint="`openssl rand -hex 32 > FILE`") from exc
    if len(token) < _SHORTEST:
        raise MonkeyError(
            f"--token-file {file}: expected {_SHORTEST} characters or more, found {len(token)}",
            hint="`openssl rand -hex 32 > FILE`",
        )
    return token


def _check_base_url(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
        raise MonkeyError(f"--base-url: expected https://HOST/PATH, found {url!r}", hint="write what browsers ask for")
    return url
