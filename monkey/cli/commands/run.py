"""`monkey run -- CMD`: one command as a job, by the same path as a sweep of thousands."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

import click

from monkey.apply.agent_environment import renew_idle_agents
from monkey.apply.ci_refusals import check_work_stays
from monkey.apply.cost_limits import Agree
from monkey.apply.execute import execute_plan
from monkey.apply.inspect.log_reading import LogFollower
from monkey.apply.planning import plan_loaded_specs
from monkey.apply.watch.watch_loop import SweepWatch
from monkey.apply.world.desired_state import check_providers, desire_specs
from monkey.apply.world.world import World
from monkey.cli.exit_codes import INTERRUPTED
from monkey.cli.rent_prompt import make_rent_prompt, yes_option
from monkey.cli.session import project_file_option, run_in_world
from monkey.cli.terminal.log_output import open_log_output
from monkey.cli.terminal.text import dump_json, make_printable, quote_log_line
from monkey.errors import MonkeyError, Problem, SpecError
from monkey.plan.commits.refusals import check_refusals
from monkey.plan.gone_sweeps import RUN_SOURCE
from monkey.protocol.status.store_snapshot import JobView
from monkey.spec.sweep.load import parse_spec

#: The variable that makes each run a job of its own.
AGAIN = "_MONKEY_RUN"
#: Options that are keys of that spec.
_OPTIONS = ("name", "cpus", "gpus", "memory", "timeout", "provider", "expires")
#: Exit code if monkey failed, and not the command (as in env, timeout and docker).
_OWN_FAILURE = 125


@dataclass
class _RunOptions:
    spec: dict[str, Any]
    detach: bool
    #: Asks for consent where machines are rented for the job.
    agree: Agree
    #: Sweep and job, once they are applied; from then on, an interrupt only detaches.
    applied: tuple[str, str] | None = None


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("words", metavar="-- CMD [ARG]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--name", help="Name of the job's sweep (default: run- and random letters).")
@click.option("--cpus", type=float, help="CPUs for the job.")
@click.option("--gpus", type=float, help="GPUs for the job, or a part of one: 0.25.")
@click.option("--memory", metavar="SIZE", help="Memory for the job: 2GiB.")
@click.option("--timeout", metavar="TIME", help="Stop the job after this time: 90s, 2h.")
@click.option("--requirements", metavar="FILE", help="Requirements file of the job's Python environment.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME",
    help="Secret for the job; may be repeated.",
)
@click.option("--output", "outputs", multiple=True, metavar="GLOB", help="Files to keep as outputs; may be repeated.")
@click.option("--provider", help="Provider to run the job on.")
@click.option("--expires", metavar="TIME", help="Time after which the job is stopped: 12h, or a date.")
@yes_option
@click.option("-d", "--detach", is_flag=True, help="Do not wait for the job.")
@project_file_option
def run_command(words: tuple[str, ...], detach: bool, yes: bool, **options: Any) -> int:
    """Run CMD once as a job, in a copy of the project's code; shows its output and keeps it in the store.

    CMD's stdin is empty. Exits with CMD's exit code, or with 125 if CMD could not be run. Ctrl-C detaches.
    """
    asked = _RunOptions(_spec(words, options), detach, make_rent_prompt(yes=yes))
    try:
        return run_in_world(lambda world: _run(world, asked), reports=True)
    except SpecError as exc:
        raise _as_said(exc) from exc
    except MonkeyError as exc:
        exc.exit_code = _OWN_FAILURE
        raise
    except KeyboardInterrupt:
        if asked.applied is None:
            raise
        click.echo(f"\nDetached: the job goes on without this terminal. {_come_back(*asked.applied)}", err=True)
        return INTERRUPTED


def _as_said(error: SpecError) -> MonkeyError:
    """Return the spec's error in terms of the command line's options: the user wrote these, and no spec."""
    if any(problem.file != RUN_SOURCE for problem in error.problems):
        error.exit_code = _OWN_FAILURE
        return error
    names = "|".join(_OPTIONS)
    hint = re.sub(rf"\b({names}): (?=[\w.])", r"--\1 ", error.problems[0].hint or "")
    told = MonkeyError("; ".join(map(_named, error.problems)), hint=hint or None)
    told.exit_code = _OWN_FAILURE
    return told


def _named(problem: Problem) -> str:
    """Return the problem's message, after the name of the option that it is about."""
    keys = re.findall(r'"(\w+)":', (problem.source or "")[: problem.column])
    return f"--{keys[-1]}: {problem.message}" if keys and keys[-1] in _OPTIONS else problem.message


def _spec(words: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the spec, as data, for the command line's words and options."""
    run = secrets.token_hex(4)
    resources = {name: options[name] for name in ("cpus", "gpus", "memory") if options[name] is not None}
    if options["gpus"] is not None and options["gpus"].is_integer():
        resources["gpus"] = int(options["gpus"])
    spec: dict[str, Any] = {
        "name": options["name"] or f"run-{run}",
        # Braces would be holes for parameters; here they are the command's own.
        "command": [word.replace("{", "{{").replace("}", "}}") for word in words],
        "parameters": {},
        # A job is never run twice; whoever runs a command again wants it to run again.
        "env": {AGAIN: run},
    }
    spec |= {"resources": resources} if resources else {}
    spec |= {"environment": {"requirements": options["requirements"]}} if options["requirements"] else {}
    spec |= {"secrets": list(options["secrets"])} if options["secrets"] else {}
    spec |= {"outputs": list(options["outputs"])} if options["outputs"] else {}
    return spec | {name: options[name] for name in ("timeout", "provider", "expires") if options[name] is not None}


async def _run(world: World, asked: _RunOptions) -> int:
    spec = parse_spec(dump_json(asked.spec), RUN_SOURCE, world.project.root, world.project.providers)
    wanted = desire_specs(world.project, [spec])
    check_providers(world.project, wanted)
    planned = await plan_loaded_specs(world, wanted, [])
    if asked.detach:
        check_work_stays(world.project, planned.plan)
    if planned.plan.sweeps[0].head:
        raise MonkeyError(
            f"expected a name that no sweep has, found {spec.name!r}, which is one already",
            hint="give it another --name",
        )
    if costs := {part.fleet: part.cost for part in planned.plan.rented if part.cost}:
        asked.agree(costs)
    await world.begin()
    await renew_idle_agents(world, planned.plan, lambda what, done: click.echo(f"{what}: {done}", err=True))
    check_refusals(planned.plan)
    await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
    job = wanted[0].desired.table.ids[0]
    asked.applied = spec.name, job
    if asked.detach:
        click.echo(f"{spec.name}: job {job}. {_come_back(spec.name, job)}")
        return 0
    return _exit_code(await _follow(world, spec.name, job))


def _come_back(sweep: str, job: str) -> str:
    return f"`monkey logs -f {job}` follows it, `monkey cancel {sweep}` stops it."


async def _follow(world: World, sweep: str, job: str) -> JobView:
    """Print what the job writes until it has ended, keep an agent running for it, and return its last view."""
    import asyncio

    sink = open_log_output(prefixed=False)

    async def stream() -> None:
        async for _, data in LogFollower(world, sweep, [job], asyncio.sleep).chunks(follow=True):
            sink.write(job, data)
        sink.close()

    watch = SweepWatch(
        world.at, world.keys, world.reader(), world.fleets, [sweep], lambda snapshot, progress, trouble: None
    )
    tasks = asyncio.create_task(watch.run()), asyncio.create_task(stream())
    try:
        progress, _ = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return progress[0].view.view(job)


def _exit_code(job: JobView) -> int:
    if job.state == "succeeded":
        return 0
    why = make_printable(job.reason or str(job.state))
    if job.exit_code:
        if why != f"exit code {job.exit_code}":
            click.echo(f"error: {why}", err=True)
        return job.exit_code
    tail = [quote_log_line(line) for line in job.log_tail if not job.attempt or job.exit_code is None]
    click.echo("\n".join([f"error: the command was not run to its end: {why}", *tail]), err=True)
    return _OWN_FAILURE
