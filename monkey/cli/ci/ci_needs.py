"""What a project needs of its CI: logins, packages, and the branch that is applied."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from monkey import origin
from monkey.apply.ci_refusals import is_runner_disk
from monkey.apply.trust.endpoints import list_forge_endpoints, list_report_endpoints, list_store_endpoints
from monkey.apply.world.project_store import locate_project_store
from monkey.ci_run import ForgeKind
from monkey.errors import MonkeyError
from monkey.transfer.code.git_files import (
    find_work_tree,
    read_current_branch,
    read_default_branch,
    read_git_info,
    read_origin_url,
)
from monkey.transfer.datasets.dvc_files import find_dvc_root

if TYPE_CHECKING:
    from monkey.spec.project.cloud import CloudSettings
    from monkey.spec.project.project import Project

#: How a job gets the store's credentials: "oidc" is a role that the forge vouches for, "keys" are secrets.
Login = Literal["aws-oidc", "aws-keys", "gcp-oidc", "gcp-keys", "azure-keys", "ssh-key"]

_BUCKETS: dict[str, Login] = {"s3": "aws-keys", "gs": "gcp-keys", "az": "azure-keys", "ssh": "ssh-key"}


@dataclass(frozen=True)
class CiNeeds:
    """What the files of one project say."""

    forge: ForgeKind
    project: str
    #: Where the repository begins, and the project's directory in it ("." for the same).
    top: Path
    directory: str
    #: Whose pushes are applied.
    branch: str
    #: "owner/name" as the remote's URL says, and its forge, "https://host"; "" where it says none.
    repository: str
    server: str
    #: A requirement that pip takes.
    package: str
    logins: tuple[Login, ...]
    #: Of rented machines: "aws", "gcp".
    clouds: tuple[tuple[str, CloudSettings], ...]
    #: URLs that get credentials and are no cloud's own.
    endpoints: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The clouds that machines are rented from."""
        return tuple(dict.fromkeys(kind for kind, _ in self.clouds))

    @property
    def slug(self) -> str:
        """The project's directory as names of files, jobs and groups have it; "" for the repository's top."""
        if self.directory == ".":
            return ""
        slug = re.sub(r"[^a-z0-9_-]+", "-", self.directory.lower().replace("/", "--"))
        # Gitea's file for the top's drift has that name; and two directories never share one.
        if slug.replace("--", "/") != self.directory or slug == "drift":
            slug += "-" + hashlib.sha256(self.directory.encode()).hexdigest()[:6]
        return slug


def find_ci_needs(project: Project, forge: ForgeKind, package: str | None, branch: str | None) -> CiNeeds:
    """Return what the project needs. Raises MonkeyError where CI would lose what it starts."""
    store = locate_project_store(project)
    _check_stays(project, store)
    types = {name: of.type for name, of in project.providers.items()}
    clouds = tuple((types[name], of.cloud) for name, of in project.providers.items() if of.cloud is not None)
    logins = _find_logins(forge, store.partition("://")[0], tuple(types.values()))
    extras = {kind for kind, _ in clouds} | ({"ssh"} if "ssh-key" in logins else set())
    if find_dvc_root(project.root / "specs") is not None:
        extras.add("dvc")
    top = find_work_tree(project.root) or project.root
    lists = (list_store_endpoints, list_report_endpoints, list_forge_endpoints)
    endpoints = {at.url for endpoints_of in lists for at in endpoints_of(project)}
    return CiNeeds(
        forge=forge,
        project=project.name,
        top=top,
        directory=project.root.resolve().relative_to(top.resolve()).as_posix(),
        branch=branch or read_default_branch(project.root) or read_current_branch(project.root) or "main",
        repository=_name_repository(url := read_origin_url(top)),
        server=_name_server(url),
        package=package or _find_package(tuple(sorted(extras))),
        logins=logins,
        clouds=clouds,
        endpoints=tuple(sorted(endpoints)),
    )


def _check_stays(project: Project, store: str) -> None:
    hint = (
        "write store: s3://BUCKET/PREFIX, gs://… or ssh://HOST/DIR, and providers: of type ssh, aws or gcp, into "
        "monkey.yaml. On a machine that stays, `monkey sync` applies what is pushed, without CI"
    )
    if is_runner_disk(store):
        raise MonkeyError(
            f"expected a store that CI and machines share, found {store}, which a runner lacks", hint=hint
        )
    if all(of.type == "local" for of in project.providers.values()):
        raise MonkeyError("expected a provider that stays when CI's runner is gone, found only local ones", hint=hint)


def _find_logins(forge: ForgeKind, scheme: str, types: tuple[str, ...]) -> tuple[Login, ...]:
    """Return the logins. Roles end after an hour, and SSH hosts that have a bucket's credentials cannot renew them."""
    found: list[Login] = ["ssh-key"] if "ssh" in types else []
    bucket = _BUCKETS.get(scheme)
    if bucket == "aws-keys" and "aws" in types and "ssh" not in types and forge != "gitea":
        bucket = "aws-oidc"
    if bucket == "gcp-keys" and "gcp" in types and "ssh" not in types and forge == "github":
        bucket = "gcp-oidc"
    return tuple(dict.fromkeys([*found, *([bucket] if bucket else [])]))


def _find_package(extras: tuple[str, ...]) -> str:
    """Return the requirement that installs this monkey on a runner: by its commit. Raises MonkeyError without one."""
    if named := origin.name_requirement(extras):
        return named
    clone = origin.locate_clone()
    url, git = (read_origin_url(clone), read_git_info(clone)) if clone else ("", None)
    # Other addresses need a login, or are of this machine.
    if url.startswith("https://") and git:
        return origin.spell_requirement(extras, f"git+{url}@{git['commit']}")
    # No variable of the forge: a fork's job gets none.
    example = origin.spell_requirement(extras, "git+https://HOST/OWNER/monkey@COMMIT")
    raise MonkeyError(
        f"expected to know what pip installs in CI; this monkey is from {url or 'no git repository at https://'}",
        hint=f"say it, with a commit and not a branch that moves: --package '{example}'",
    )


def _name_server(url: str) -> str:
    """Return where the forge of that URL is: by https, also if git goes there by SSH."""
    found = re.fullmatch(r"(?:\w+://)?(?:[^@/]*@)?([\w.-]+)(?::\d+)?[:/].*", url)
    return f"https://{found[1]}" if found else ""


def _name_repository(url: str) -> str:
    """Return "owner/name" of a forge's URL, https:// or git@host:; "" for what is none."""
    path = url.partition("://")[2].partition("/")[2] if "://" in url else url.partition(":")[2]
    path = path.strip("/").removesuffix(".git")
    return path if "/" in path and not any(sign in path for sign in "\"'$` \\") else ""
