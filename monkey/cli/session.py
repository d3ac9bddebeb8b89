"""What every verb that looks at the store begins with: the project around us, opened."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from monkey.apply.world.world import World
    from monkey.fleet.fleet_port import Fleet
    from monkey.spec.project.project import Project

_T = TypeVar("_T")

#: Where click's context keeps the file of `--project-file`.
_PROJECT_FILE = "monkey.project_file"


def _choose_file(context: click.Context, parameter: click.Parameter, file: str | None) -> None:
    if file is not None:
        context.meta[_PROJECT_FILE] = Path(file)


#: `--project-file`, the same for every verb that has it.
project_file_option = click.option(
    "--project-file",
    metavar="FILE",
    expose_value=False,
    callback=_choose_file,
    help="Read this file in place of the repository's monkey.yaml, and trust it.",
)

#: `--json`, the same for everything that lists.
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def check_one_format(**chosen: bool) -> None:
    """Raise UsageError where more than one of these options is given."""
    if sum(chosen.values()) > 1:
        raise click.UsageError(f"{' and '.join(name for name, on in chosen.items() if on)} exclude each other")


def print_pieces(pieces: Iterable[str]) -> None:
    """Print texts as they are made, each with its own newlines: a long one never stands in memory as a whole."""
    for piece in pieces:
        click.echo(piece, nl=False)


def find_project() -> Project:
    """Return the project around the working directory, by the file and the store that the user chose, if any."""
    from monkey.spec.project.project import STORE_VARIABLE, load_project
    from monkey.transfer.code.git_files import read_origin_url

    return load_project(Path.cwd(), find_project_file(), os.environ.get(STORE_VARIABLE), read_origin_url)


def find_project_file() -> Path | None:
    """Return the file of `--project-file`, None where it was not given."""
    context = click.get_current_context(silent=True)
    file: Path | None = context.meta.get(_PROJECT_FILE) if context else None
    return file


def run_in_world(
    work: Callable[[World], Awaitable[_T]], *, reports: bool = False, remember: bool = True, ask: bool = True
) -> _T:
    """Open the project's store, do the work, close it, and return what the work returns.

    `reports`: metrics or notices may be sent, too. `remember`: see `open_world`. `ask`: ask whether an endpoint is
    trusted. Raises KeyboardInterrupt at SIGINT and SIGTERM; with words, where machines that cost may stand half-made.
    """
    import asyncio
    import signal

    from monkey.apply.world.world import open_world
    from monkey.cli.terminal.progress_bars import ProgressBars
    from monkey.cli.trust_prompt import ask_trust

    here, fleets = find_project(), list["Fleet"]()
    if ask:
        ask_trust(here, reports=reports)

    async def inside() -> _T:
        _cancel_at_sigterm()
        async with open_world(here, remember=remember) as world:
            try:
                with ProgressBars() as bars:
                    world.bars = bars.begin
                    return await work(world)
            finally:
                fleets.extend(world.fleets.values())

    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(inside())
    except (KeyboardInterrupt, asyncio.CancelledError) as exc:
        raise KeyboardInterrupt(*_halfway(fleets)) from exc
    finally:
        signal.signal(signal.SIGTERM, before)


def _cancel_at_sigterm() -> None:
    """Have SIGTERM cancel the running task, as asyncio does at SIGINT.

    A handler of the loop's own runs at its next turn: a signal within the last one was lost.
    """
    import asyncio
    import signal

    stopping, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert stopping is not None

    def stop(*_: object) -> None:
        if stopping.done():
            raise KeyboardInterrupt
        stopping.cancel()
        loop.call_soon_threadsafe(lambda: None)  # wakes a loop that waits

    signal.signal(signal.SIGTERM, stop)


def _halfway(fleets: list[Fleet]) -> list[str]:
    """Return what is said of an interrupt, in lines; none where no machine that costs may have been touched."""
    from monkey.fleet.fleet_port import Rented

    names = [fleet.name for fleet in fleets if isinstance(fleet, Rented) and fleet.touched]
    if not names:
        return []
    context = click.get_current_context(silent=True)
    verb = context.info_name if context else None
    on = "the same command goes on" if verb in ("apply", "run", "destroy") else "`monkey apply` goes on"
    away = "; `monkey destroy" + "".join(f" --fleet {name}" for name in names) + "` takes it away"
    return [
        f"interrupted: what was done to machines of {', '.join(names)} so far stays, and what is there costs money",
        f"hint: {on}{away if verb != 'destroy' else ''}",
    ]


def complete_sweep_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Complete the names of sweeps; silence where there is no store, or no answer."""
    from click.shell_completion import CompletionItem

    try:
        names = run_in_world(_names, ask=False)
    except Exception:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


async def _names(world: World) -> list[str]:
    from monkey.protocol.sweeps.sweep_log import list_sweeps

    return await list_sweeps(world.at, world.keys)
