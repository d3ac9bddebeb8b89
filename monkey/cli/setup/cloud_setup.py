"""The work of `monkey init --provider`: an entry for rented machines, their store, and the permissions they need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monkey.cli.setup.project_lines import LOCAL_ENTRY, append_lines, format_yaml_text
from monkey.errors import MonkeyError
from monkey.spec.project.cloud import MACHINE_TYPE_KEYS
from monkey.spec.project.project import PROJECT_FILE
from monkey.transfer.code.git_files import read_origin_url

if TYPE_CHECKING:
    from monkey.spec.project.cloud import CloudSettings
    from monkey.spec.project.project import Project

#: Provider type to the module that sets it up, and to the scheme of its stores' URLs.
STARTS = {"aws": ("monkey_stacks.aws.setup", "s3://"), "gcp": ("monkey_stacks.gcp.setup", "gs://")}
_EXAMPLES = {
    "aws": "--region eu-central-1 --type g5.xlarge --store s3://bucket/prefix",
    "gcp": "--gcp-project my-project --region europe-west4 --type g2-standard-8 --store gs://bucket/prefix",
}
#: Name of the provider in the entry that `init` writes.
_NAME = "cloud"


@dataclass(frozen=True)
class CloudOptions:
    """The options of the command line; None for those that were not given."""

    provider: str
    region: str | None = None
    type: str | None = None
    store: str | None = None
    #: Of gcp: the cloud's own project.
    gcp_project: str | None = None
    #: Whether to make the store's bucket.
    bucket: bool = False

    def check(self) -> None:
        """Raise MonkeyError if the options do not make a valid entry of monkey.yaml."""
        from monkey.spec.project import provider, store_url
        from monkey.store.bucket.url import parse_bucket_url

        needed = ("region", "type", "store", *(["gcp_project"] if self.provider == "gcp" else []))
        missing = [f"--{name.replace('_', '-')}" for name in needed if getattr(self, name) is None]
        if missing:
            raise MonkeyError(
                f"expected {' and '.join(missing)} for a provider of type {self.provider}, found none",
                hint=f"say where to rent what, and where its results go: {_EXAMPLES[self.provider]}",
            )
        found = [*store_url.find_store_mistakes(self.store), *provider.find_provider_mistakes({_NAME: self._entry})]
        if found:
            raise MonkeyError(found[0].message, hint=found[0].hint)
        if not str(self.store).startswith(STARTS[self.provider][1]):
            hint = f"write --store {STARTS[self.provider][1]}BUCKET/PREFIX"
            raise MonkeyError(f"machines of {self.provider} cannot reach the store {self.store!r}", hint=hint)
        if self.bucket and (endpoint := parse_bucket_url(str(self.store)).options.get("endpoint")):
            raise MonkeyError(
                f"expected a bucket of {self.provider}'s own, found the endpoint {endpoint}; nothing was written",
                hint="leave --create-bucket out, and make the bucket with the tools of whose it is",
            )

    @property
    def _entry(self) -> Mapping[str, Any]:
        project = {"gcp_project": self.gcp_project} if self.provider == "gcp" else {}
        return {"type": self.provider, **project, "region": self.region, MACHINE_TYPE_KEYS[self.provider]: self.type}

    @property
    def lines(self) -> dict[str, str]:
        """Return the lines to add to monkey.yaml, by their top-level key."""
        entry = "".join(f"    {key}: {value}\n" for key, value in self._entry.items())
        more = (
            "    max_instances: 1\n"
            "    # spot: true        # cheaper; the cloud may take machines back\n"
            "    # price: 1.01       # USD an hour of one: plans say the worst case\n"
            "    # max_cost: 50      # USD: plans above it are refused\n"
        )
        return {
            "store": f"store: {format_yaml_text(str(self.store))}\n",
            "providers": f"providers:\n{LOCAL_ENTRY}  {_NAME}:\n{entry}{more}",
        }


def add_provider(path: Path, wanted: CloudOptions) -> bool:
    """Add the entry to the monkey.yaml at `path` unless it has one of this type; return whether it was added.

    Raises MonkeyError, SpecError.
    """
    from monkey.spec.project.project import load_project

    project = load_project(path.parent)
    if there := _of_type(project, wanted.provider):
        _check_same(project, there, wanted)
        return False
    wanted.check()
    append_lines(path, wanted.lines)
    return True


def _check_same(project: Project, there: Mapping[str, Any], wanted: CloudOptions) -> None:
    """Raise MonkeyError if an option differs from all entries of monkey.yaml: it would have no effect."""
    from monkey.apply.world.project_store import locate_project_store

    store = locate_project_store(project)
    if wanted.store is not None and "?" not in wanted.store:  # options may be said beside it
        store = store.partition("?")[0]
    keys = [key for key in ("region", "type", "gcp_project", "store") if getattr(wanted, key) is not None]
    asked = {key: str(getattr(wanted, key)).rstrip("/") for key in keys}
    found = {name: _said(of.cloud, store) for name, of in there.items()}
    others = [[key for key in keys if asked[key] not in has[key]] for has in found.values()]
    if not all(others):
        return
    (name, has), key = next(iter(found.items())), others[0][0]
    whose, option = "the store" if key == "store" else f"provider {name!r}", f"--{key.replace('_', '-')}"
    raise MonkeyError(
        f"{PROJECT_FILE} has {' or '.join(has[key])} for {whose}, and {option} is {asked[key]}; nothing was written",
        hint=f"leave {option} out, or change {PROJECT_FILE} by hand",
    )


def _said(cloud: CloudSettings, store: str) -> dict[str, tuple[str, ...]]:
    """Return the values of a provider's entry, by the option that asks for them."""
    return {
        "region": (cloud.region,),
        "type": cloud.types,
        "gcp_project": (cloud.gcp_project,),
        "store": (store.rstrip("/"),),
    }


def list_next_steps(spec: str) -> list[str]:
    """Return the lines that say what to do after `init` wrote an entry; `spec`: the spec's file."""
    return [
        f"Next: say in {spec} who is to run it, and until when: provider: {_NAME}, and expires: 12h.",
        f"Types with GPUs need an image with a driver for them, too: image: in {PROJECT_FILE}.",
        "Then monkey plan, and monkey apply.",
    ]


def prepare_cloud(root: Path, provider: str, *, bucket: bool) -> None:
    """Print the policy that `apply` needs, alone on stdout; with `bucket`, make the store's bucket before.

    Raises FleetError, StoreError, and MonkeyError where the provider's machines cannot reach the store.
    """
    from monkey.apply.world.project_store import locate_project_store
    from monkey.spec.project.project import load_project

    project = load_project(root, ask_origin=read_origin_url)
    url, start = locate_project_store(project), import_module(STARTS[provider][0])
    found = [of.cloud for of in _of_type(project, provider).values() if of.cloud is not None]
    clouds = {(cloud.gcp_project, cloud.region): cloud for cloud in found}
    if not url.startswith(STARTS[provider][1]):
        hint = f"write store: {STARTS[provider][1]}BUCKET/PREFIX in {PROJECT_FILE}"
        raise MonkeyError(f"machines of {provider} cannot reach the store {url!r}", hint=hint)
    for cloud in clouds.values():
        if bucket:
            made = start.make_store(url, cloud)
            click.echo(f"{url}: the bucket {'was made' if made else 'is there already'}.", err=True)
        policy = start.list_permissions(project.name, url, cloud)
        where = f"the project {cloud.gcp_project}" if cloud.gcp_project else cloud.region
        click.echo(f"What whoever applies must be permitted in {where}; an administrator attaches it:", err=True)
        click.echo(json.dumps(json.loads(policy), indent=2))


def _of_type(project: Project, provider: str) -> dict[str, Any]:
    return {name: of for name, of in project.providers.items() if of.type == provider}
