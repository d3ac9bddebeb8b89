"""`monkey fetch`: what jobs made, brought here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from monkey.apply.inspect.result_facts import read_sweep_facts
from monkey.apply.world.lookup import find_sweep_or_job
from monkey.apply.world.world import World
from monkey.cli.render.fetch_report import FetchBar, format_fetched, format_unfetched
from monkey.cli.session import complete_sweep_names, json_option, run_in_world
from monkey.cli.terminal.text import dump_json
from monkey.errors import MonkeyError, NotFound
from monkey.protocol.layout import Keys
from monkey.protocol.status.agent_views import SweepView
from monkey.protocol.status.job_view import JobView
from monkey.results.curves.curve_reader import CurveReader
from monkey.results.curves.step_values import read_step_values
from monkey.results.export import format_results_csv, serialize_row
from monkey.results.result_filter import add_facts, filter_results, needs_facts
from monkey.results.result_rows import Results, gather_results
from monkey.transfer.download import Download, DownloadFile, DownloadResult, check_path
from monkey.transfer.fetch_directory import FetchDirectory
from monkey.transfer.globs import GlobPatterns

_DIRECTORY = click.Path(file_okay=False, path_type=Path)
#: States in which what a job made will not change.
ENDED = ("succeeded", "failed", "cancelled", "stopped")


@dataclass(frozen=True)
class _FetchOptions:
    what: str
    output: Path | None
    where: str | None
    top: int | None
    only: tuple[str, ...]
    force: bool
    as_json: bool


@click.command("fetch")
@click.argument("what", metavar="SWEEP|JOB", shell_complete=complete_sweep_names)
@click.option(
    "-o",
    "--output",
    type=_DIRECTORY,
    metavar="DIR",
    help="Output directory (default: sweep name or job id).",
)
@click.option("--only", multiple=True, metavar="GLOB", help="Only matching files: '*.npz', 'plots/'; may be repeated.")
@click.option("--where", metavar="CONDITION", help="Only matching jobs: 'lr < 0.1 and state == \"succeeded\"'.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N jobs, as `results` ranks them.")
@click.option("--force", is_flag=True, help="Also replace files that fetch did not write, or that were changed since.")
@json_option
def fetch_command(
    what: str,
    output: Path | None,
    only: tuple[str, ...],
    where: str | None,
    top: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Download the outputs of JOB, or of all jobs of SWEEP that succeeded or met stop_when.

    A sweep's jobs get a directory each, named by job id; results.csv and results.json list their parameters. Every file
    is checked against the digest that its job recorded. Files that exist already are not downloaded again. Only files
    that fetch wrote are replaced. Nothing is written into .git, .monkey or .ssh.
    """
    asked = _FetchOptions(what, output, where, top, only, force, as_json)
    click.echo(run_in_world(lambda world: _fetch(world, asked)))


async def _fetch(world: World, asked: _FetchOptions) -> str:
    found = find_sweep_or_job(await world.reader().read(), asked.what)
    if found.job is not None and (asked.where or asked.top):
        raise MonkeyError("--where and --top choose jobs of a sweep, and this is one job")
    facts = await read_sweep_facts(world, found.view) if needs_facts(asked.where) else {}
    results = None if found.job else await _choose(world, found.view, asked, facts)
    jobs = [found.job] if found.job else [results.table.ids[at] for at in results.order] if results else []
    files = _files(world.keys, found.view, jobs, asked, alone=found.job is not None)
    if not any(files.values()):
        raise _nothing(found.view, jobs, asked)
    place = asked.output or Path(found.job or found.view.state.name)
    try:
        directory = FetchDirectory(place, force=asked.force)
        brought = await _download(world, [file for some in files.values() for file in some], directory)
        if results is not None:
            brought.failed |= _index(directory, results, files)
    except OSError as exc:
        raise MonkeyError(
            f"expected a directory to write to, found {place}: {exc.strerror or exc}",
            hint="name a directory on a disk with room, in which you may write: -o DIR",
        ) from exc
    return _told(brought, files, directory.root, as_json=asked.as_json)


async def _choose(
    world: World, view: SweepView, asked: _FetchOptions, facts: Mapping[str, Mapping[str, Any]]
) -> Results:
    """Return the jobs to fetch, the best first."""
    revision = view.state.revision
    assert revision is not None  # find sees to it
    results = gather_results(revision.table, revision.settings, view.jobs)
    if results.take == "best":
        results = await read_step_values(results, CurveReader(world.at, world.keys), revision.adopted)
    if asked.where:
        results = filter_results(add_facts(results, facts), asked.where)
    states = ENDED if asked.where else ("succeeded", "stopped")
    return results.choose([at for at in results.order if results.states[at] in states][: asked.top])


def _files(
    keys: Keys, view: SweepView, jobs: list[str], asked: _FetchOptions, *, alone: bool
) -> dict[str, list[DownloadFile]]:
    """Return job to its files; `alone`: they need no directory of their own."""
    try:
        globs = GlobPatterns(asked.only) if asked.only else None
    except ValueError as exc:
        raise MonkeyError(f"--only: {exc}") from exc
    return {job: _of_job(keys, view, view.view(job), globs, "" if alone else f"{job}/") for job in jobs}


def _of_job(keys: Keys, view: SweepView, job: JobView, globs: object, below: str) -> list[DownloadFile]:
    if job.state not in ENDED:
        return []  # what is recorded is of an earlier attempt
    for path in job.outputs:
        check_path(path)  # before it becomes part of a key
    return [
        DownloadFile(view.locate_output(keys, job, path), below + path, digest)
        for path, digest in job.outputs.items()
        if not isinstance(globs, GlobPatterns) or globs.match(path)
    ]


def _nothing(view: SweepView, jobs: list[str], asked: _FetchOptions) -> NotFound:
    name = view.state.name
    if not jobs:
        return NotFound(f"no job of {name!r} fits, or none has succeeded yet", hint=f"see `monkey list jobs {name}`")
    if any(view.view(job).outputs for job in jobs) and asked.only:
        return NotFound(f"none of the files fits --only {' '.join(asked.only)}", hint="`monkey info JOB` names them")
    if all(view.where(job) not in ENDED for job in jobs):
        return NotFound(f"{asked.what!r} has not ended yet", hint="its outputs are kept when it has")
    return NotFound("nothing was kept", hint="name files by `outputs:`, or write them to $MONKEY_OUTPUT_DIR")


async def _download(world: World, files: list[DownloadFile], directory: FetchDirectory) -> DownloadResult:
    with FetchBar(len(files)) as bar:
        return await Download(world.at, directory, bar.show).run(files)


def _index(directory: FetchDirectory, results: Results, files: dict[str, list[DownloadFile]]) -> dict[str, str]:
    """Write what each job was run with and what came of it; return path to reason of a file that cannot be written."""
    rows = [serialize_row(row) | {"files": {f.path: f.sha256 for f in files[row.job]}} for row in results.rows]
    texts = {
        "results.csv": "".join(format_results_csv(results)),
        "results.json": dump_json(rows, indent=1) + "\n",
    }
    written = {name: directory.write(name, text) for name, text in texts.items()}
    return {name: why for name, why in written.items() if why}


def _told(brought: DownloadResult, files: dict[str, list[DownloadFile]], directory: Path, *, as_json: bool) -> str:
    if brought.failed:
        raise MonkeyError(format_unfetched(brought), hint="what came is whole; `monkey fetch` again tries the rest")
    if as_json:
        jobs = {job: {file.path: file.sha256 for file in some} for job, some in files.items()}
        told = {"directory": str(directory), "fetched": brought.fetched, "bytes": brought.size}
        return dump_json(told | {"kept": brought.kept, "jobs": jobs}, indent=1)
    return "\n".join(format_fetched(brought, sum(map(bool, files.values())), str(directory)))
