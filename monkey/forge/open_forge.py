"""A forge, opened by the token that the environment has: of a CI run, or of a project outside of CI."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from monkey.ci_run import API_VARIABLES, ForgeKind, read_ci_run
from monkey.errors import ForgeError
from monkey.forge.forge_location import locate_forge
from monkey.forge.forge_port import Forge
from monkey.forge.github import GitHubForge
from monkey.forge.gitlab import GitLabForge
from monkey.forge.rest_client import RestClient, check_api_url
from monkey.spec.project.forge_settings import ForgeSettings

#: Where a token may be that is for monkey alone, at every forge.
MONKEY_TOKEN = "MONKEY_FORGE_TOKEN"
#: Where else the token of each forge may be. GitLab's own, CI_JOB_TOKEN, may write neither notes nor statuses.
TOKENS = {
    "github": ("GITHUB_TOKEN",),
    "gitea": ("GITEA_TOKEN", "FORGEJO_TOKEN", "GITHUB_TOKEN"),
    "gitlab": ("GITLAB_TOKEN",),
}


class NamedForge(Protocol):
    """What `CiRun` and `ForgeLocation` say of a forge; "" and None for what is not known."""

    @property
    def forge(self) -> ForgeKind | None: ...

    @property
    def api(self) -> str: ...

    @property
    def repository(self) -> str: ...


class OpenedForge(NamedTuple):
    """A forge, and the repository there."""

    forge: Forge
    repository: str


def open_project_forge(
    settings: ForgeSettings | None, remote: str, environ: Mapping[str, str], token: str = "", place: str = ""
) -> OpenedForge:
    """Return the forge of a project whose monkey.yaml has this `forge:`, and whose remote has this URL.

    In CI, the run's own variables win. `token`: in place of the environment's, from `place`. An API that only the
    repository names must be trusted before: `monkey.apply.trust` asks. Raises ForgeError where it is not known, or
    there is no token.
    """
    run = read_ci_run(environ)
    at: NamedForge = run if run is not None and run.forge is not None else locate_forge(settings, remote)
    forge = open_forge(at, environ, token=token, place=place)
    if forge is None:
        names = " or ".join((MONKEY_TOKEN, *TOKENS[at.forge or ""]))
        raise ForgeError(f"expected a token for the forge at {at.api}, found none", hint=f"set the variable {names}")
    return OpenedForge(forge, at.repository)


def open_forge(
    at: NamedForge,
    environ: Mapping[str, str],
    wait: Callable[[float], None] = time.sleep,
    token: str = "",
    place: str = "",
) -> Forge | None:
    """Return a forge; None where not all of it is named, or there is no token for it: `token`, or the environment's.

    `place`: where people put that token; by default, a variable. Raises ForgeError for an API to which no token may be
    sent.
    """
    place = place or _name_variables(at, {} if token else environ)
    token = token or find_token(at, environ)
    if not token or at.forge is None or not at.api or not at.repository:
        return None
    api = check_api_url(at.api, trusted=at.api in [environ.get(name, "").rstrip("/") for name in API_VARIABLES])
    if at.forge == "gitlab":
        return GitLabForge(RestClient(api, {"PRIVATE-TOKEN": token}, token, wait, place), at.repository)
    # Both take "token"; GitHub takes "Bearer" as well, and Gitea does for some tokens only.
    headers = {"Authorization": f"token {token}"}
    if at.forge == "github":
        headers |= {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    return GitHubForge(RestClient(api, headers, token, wait, place), at.repository, at.forge)


def find_token(at: NamedForge, environ: Mapping[str, str]) -> str:
    """Return the token for a forge; "" where there is none."""
    return next((value for name in _list_names(at) if (value := environ.get(name, "").strip())), "")


def _name_variables(at: NamedForge, environ: Mapping[str, str]) -> str:
    """Return where to put another token: the variable that has it now, and ours, which goes before all others."""
    found = next((name for name in _list_names(at) if environ.get(name, "").strip()), MONKEY_TOKEN)
    return f"the variable {MONKEY_TOKEN}" if found == MONKEY_TOKEN else f"the variable {found}, or {MONKEY_TOKEN}"


def _list_names(at: NamedForge) -> tuple[str, ...]:
    return (MONKEY_TOKEN, *TOKENS.get(at.forge or "", ()))
