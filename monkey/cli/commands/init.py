"""`monkey init`: a project that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

import click

from monkey.atomic_write import write_atomically
from monkey.ci_run import ForgeKind
from monkey.cli.ci.ci_setup import prepare_ci
from monkey.cli.setup.cloud_setup import CloudOptions, add_provider, list_next_steps, prepare_cloud
from monkey.cli.setup.host_options import HostOptions
from monkey.cli.setup.project_lines import AskedMachines, add_machines, check_no_machines, name_project
from monkey.cli.setup.queue_setup import QUEUE_OPTIONS, QueueOptions
from monkey.cli.terminal.text import dump_json, format_plural
from monkey.errors import MonkeyError
from monkey.spec.project.provider import MADE_BY_INIT
from monkey.spec.project_paths import make_project_directory
from monkey.spec.sweep.json_schema import build_spec_schema

#: What the local store, Python and a run of the script by hand leave behind; none of it belongs into git, or is code.
IGNORED = (".monkey/", "__pycache__/", "/model.json", "*.log")

MONKEY_YAML = """\
# The project. Everything here has a default: this file may be empty, or not be there at all.
project: {project}
# store: .monkey/store            # where plans, jobs and results meet: a path (local, NFS), s3://bucket/prefix, ssh://host/dir
# providers:
#   local: {{type: local}}          # max_slots: 4 limits how many jobs run here at once
#   lab: {{type: ssh, hosts: [gpu1, me@gpu2:2222]}}  # machines that you reach by SSH
"""

SPEC = """\
# yaml-language-server: $schema=schema.json
name: experiment
command: python3 train.py --lr {lr} --momentum {momentum} --seed {seed}
parameters:
  lr: [0.01, 0.03, 0.1, 0.3]
  momentum: [0.0, 0.9]
  seed: {range: [0, 3]}
metric: {name: loss, goal: minimize}
max_retries: 1
timeout: 10m
resources: {cpus: 1, gpus: 0}  # of its machine; a job sees only the GPUs that it asks for
code: {include: [train.py]}  # what jobs run with: a change of other files makes no result stale
outputs: [model.json]
"""

TRAIN = '''\
"""Fit a line to noisy points by gradient descent: a stand-in for your own training."""

import argparse
import json
import os
import random
import time


def log(metrics, step):
    """Record metrics: with monkey where it is installed, else by the line of JSON that any language can write."""
    print(f"step {step}: " + ", ".join(f"{name} {value:.4f}" for name, value in metrics.items()), flush=True)
    try:
        from monkey import log as record
    except ImportError:
        where = os.environ.get("MONKEY_METRICS_DIR")
        if where:
            with open(os.path.join(where, f"{os.getpid()}-train.jsonl"), "a") as file:
                file.write(json.dumps({"t": time.time(), "step": step, "m": metrics}) + "\\n")
    else:
        record(metrics, step=step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    points = [(x / 50, 3 * x / 50 - 1 + rng.gauss(0, 0.1)) for x in range(-50, 51)]
    slope = intercept = slope_speed = intercept_speed = 0.0
    for step in range(1, 51):
        errors = [(x, slope * x + intercept - y) for x, y in points]
        loss = sum(error * error for _, error in errors) / len(points)
        slope_speed = args.momentum * slope_speed - args.lr * sum(x * error for x, error in errors) / len(points)
        intercept_speed = args.momentum * intercept_speed - args.lr * sum(error for _, error in errors) / len(points)
        slope, intercept = slope + slope_speed, intercept + intercept_speed
        if step % 10 == 0:
            log({"loss": loss}, step)
    with open("model.json", "w") as file:
        json.dump({"slope": slope, "intercept": intercept}, file)


if __name__ == "__main__":
    main()
'''


@click.command("init")
@click.argument("directory", default=".", type=click.Path(file_okay=False))
@click.option(
    "--provider",
    type=click.Choice(MADE_BY_INIT),
    help="Cloud to rent machines from; prints its permissions. Or a kind of cluster, or ssh: asked what they have.",
)
@click.option("--host", "hosts", metavar="HOST", multiple=True, help="A host, as ssh knows it; repeatable (ssh only).")
@click.option("--login", metavar="HOST", help="Login node of the cluster, as ssh knows it (slurm only).")
@click.option("--partition", metavar="NAME", help="Partition of the cluster, if not the default one (slurm only).")
@click.option("--context", metavar="NAME", help="Context of kubectl, if not the current one (kubernetes only).")
@click.option("--namespace", metavar="NAME", help="Namespace, if not the context's (kubernetes only).")
@click.option(
    "--create",
    is_flag=True,
    flag_value="yes",
    default=None,
    help="Have apply make a missing namespace and a volume claim (kubernetes only).",
)
@click.option("--region", help="Region of the machines: eu-central-1.")
@click.option("--type", "kind", help="Type of the machines: g5.xlarge.")
@click.option("--store", metavar="URL", help="Store of the project: s3://bucket/prefix.")
@click.option("--gcp-project", metavar="ID", help="Project at Google that pays (gcp only).")
@click.option("--ci", type=click.Choice(get_args(ForgeKind)), help="Write workflows for this forge.")
@click.option("--package", metavar="REQUIREMENT", help="What CI's pip installs: monkey-sweep @ git+https://…@COMMIT.")
@click.option("--branch", metavar="NAME", help="Branch that CI applies (default: the remote's).")
@click.option("--create-bucket", "bucket", is_flag=True, help="Create the store's bucket unless it exists.")
def init_command(
    directory: str,
    provider: str | None,
    hosts: tuple[str, ...],
    login: str | None,
    partition: str | None,
    context: str | None,
    namespace: str | None,
    create: str | None,
    region: str | None,
    kind: str | None,
    store: str | None,
    gcp_project: str | None,
    ci: ForgeKind | None,
    package: str | None,
    branch: str | None,
    bucket: bool,
) -> None:
    """Create a project in DIRECTORY (default: here): an example spec and training script. Existing files stay.

    --provider adds a cloud's machines to a new or existing project, and prints the permissions needed to apply. For a
    cluster it asks what is there, and writes it into monkey.yaml: partitions, accounts and GPUs, or namespaces.
    For hosts it asks each --host, and writes CPUs, memory, GPUs and disk beside its name.

    --ci writes workflows that plan pull requests and apply the branch, and prints a script of what is left to do.
    """
    root = Path(directory)
    queued = {"login": login, "partition": partition, "context": context, "namespace": namespace, "create": create}
    rented = {"--region": region, "--type": kind, "--gcp-project": gcp_project, "--create-bucket": bucket or None}
    options: dict[str, Mapping[str, object]] = {"cloud": rented, "ssh": {"--host": hosts or None}}
    options |= {name: {f"--{each}": queued[each] for each in of} for name, of in QUEUE_OPTIONS.items()}
    if ci is not None:
        _refuse_beside_ci([{"--provider": provider, "--store": store}, *options.values()])
        prepare_ci(root, ci, package, branch)
        return
    _refuse_without_ci(package or branch)
    _refuse_others(provider, options, store)
    if provider is None:
        _start(root, directory)
    elif provider in QUEUE_OPTIONS:
        _ask(root, directory, QueueOptions(provider, root, queued, store))
    elif provider == "ssh":
        _ask(root, directory, HostOptions(root, hosts, store))
    else:
        _rent(root, directory, CloudOptions(provider, region, kind, store, gcp_project, bucket))


def _refuse_others(provider: str | None, options: Mapping[str, Mapping[str, object]], store: str | None) -> None:
    """Raise MonkeyError for an option that this provider does not know; `options`: those of each kind of provider."""
    ours = provider if provider in options or provider is None else "cloud"
    given = [(kind, name) for kind, all_of in options.items() for name, said in all_of.items() if said is not None]
    if provider is None and (given or store is not None):
        kind, name = (*given, ("cloud", "--store"))[0]
        rents = "gcp" if ("cloud", "--gcp-project") in given else "aws"
        raise MonkeyError(f"{name} needs --provider", hint=f"add --provider {rents if kind == 'cloud' else kind}")
    if others := [name for kind, name in given if kind != ours]:
        raise MonkeyError(f"--provider {provider} has no {others[0]}", hint=f"leave {others[0]} out")


def _ask(root: Path, directory: str, wanted: AskedMachines) -> None:
    """Add machines to a new or existing project, by what they say that they have. Asks before it writes."""
    wanted.check()
    file = root / "monkey.yaml"
    if file.exists():
        check_no_machines(file, wanted)
    lines = wanted.ask()
    if file.exists():
        add_machines(file, wanted, lines)
        click.echo(f"Added to monkey.yaml: {' and '.join(lines)}.", err=True)
        spec = "your spec"
    else:
        _start(root, directory, "".join(lines.values()))
        spec = str(root / "specs/experiment.yaml")
    for step in wanted.list_steps(spec, lines):
        click.echo(step, err=True)


def _rent(root: Path, directory: str, wanted: CloudOptions) -> None:
    """Add the cloud's machines to a new or existing project, and print what they need."""
    if not (root / "monkey.yaml").exists():
        wanted.check()
        _start(root, directory, "".join(wanted.lines.values()))
        steps = list_next_steps(str(root / "specs/experiment.yaml"))
    elif add_provider(root / "monkey.yaml", wanted):
        click.echo("Added to monkey.yaml: store and providers.", err=True)
        steps = list_next_steps("your spec")
    else:
        steps = []
    try:
        prepare_cloud(root, wanted.provider, bucket=wanted.bucket)
    finally:  # what was written is there, whatever fails now
        for step in steps:
            click.echo(step, err=True)


def _refuse_beside_ci(others: Iterable[Mapping[str, object]]) -> None:
    if given := [name for options in others for name, said in options.items() if said]:
        raise MonkeyError(f"--ci and {given[0]} exclude each other", hint="first the machines, then their CI")


def _refuse_without_ci(given: str | None) -> None:
    if given:
        raise MonkeyError("--package and --branch need --ci", hint="--ci github")


def _start(root: Path, directory: str, machines: str = "") -> None:
    files = _files(root)
    files["monkey.yaml"] += machines
    there = [name for name in files if (root / name).exists() or (root / name).is_symlink()]
    if len(there) == len(files):
        raise MonkeyError(
            f"{', '.join(there)} are there already; nothing was written",
            hint="`monkey init DIRECTORY` starts a project elsewhere",
        )
    written = [name for name in files if name not in there]
    for name in written:
        make_project_directory((root / name).parent, root)
        _write_new(root / name, files[name])
    if _ignore(root / ".gitignore"):
        written.append(".gitignore")
    click.echo(f"Wrote {format_plural(len(written), 'file')}: {', '.join(written)}.", err=bool(machines))
    if there:
        click.echo(f"Kept {', '.join(there)}.", err=bool(machines))
    into = "" if root.resolve() == Path.cwd() else f"cd {directory} && "
    if not machines:
        click.echo(f"Next: {into}monkey plan, then monkey apply.")


def _files(root: Path) -> dict[str, str]:
    return {
        "monkey.yaml": MONKEY_YAML.format(project=name_project(root)),
        "specs/experiment.yaml": SPEC,
        "specs/schema.json": dump_json(build_spec_schema(), indent=2) + "\n",
        "train.py": TRAIN,
    }


def _write_new(path: Path, content: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(content)


def _ignore(path: Path) -> bool:
    """Add our lines to .gitignore, where they are missing; return whether any was."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    missing = [line for line in IGNORED if line not in lines and line.rstrip("/") not in lines]
    if missing:
        write_atomically(path, "\n".join([*lines, *missing]) + "\n")
    return bool(missing)
