"""The work of `monkey init --ci`: files for a forge, and a script of what is left to do by hand."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from monkey.apply.world.project_store import locate_project_store
from monkey.atomic_write import write_atomically
from monkey.ci_run import ForgeKind
from monkey.cli.ci import actions_workflow, gitlab_pipeline
from monkey.cli.ci.ci_needs import CiNeeds, find_ci_needs
from monkey.cli.ci.cloud_roles import list_role_commands
from monkey.cli.ci.gitlab_pipeline import INCLUDE, PIPELINE, STAGES
from monkey.cli.ci.workflow_steps import PREVIEW_LABEL
from monkey.errors import MonkeyError
from monkey.spec.project.project import load_project
from monkey.spec.project_paths import make_project_directory
from monkey.transfer.code.git_files import read_origin_url


def prepare_ci(root: Path, forge: ForgeKind, package: str | None = None, branch: str | None = None) -> None:
    """Write the forge's files for the project at `root`, and print what is left to do: a script, alone on stdout.

    Raises MonkeyError where the runner would lose what it starts, or where another file is there.
    """
    project = load_project(root, ask_origin=read_origin_url)
    needs = find_ci_needs(project, forge, package, branch)
    write = gitlab_pipeline.write_pipeline if forge == "gitlab" else actions_workflow.write_workflows
    files = write(needs)
    if needs.slug and needs.forge == "gitlab" and _is_of_others(needs.top / PIPELINE, files[PIPELINE]):
        del files[PIPELINE]  # what all projects share: a few lines, which the script names
    _write_files(needs.top, files)
    click.echo("\n".join(list_steps(needs, locate_project_store(project), list(files))))


def _write_files(top: Path, files: dict[str, str]) -> None:
    """Write the files, all or none: what another hand wrote there is not ours to replace."""
    missing = []
    for name, text in files.items():
        path = top / name
        if not os.path.lexists(path):
            missing.append(name)
        elif _is_of_others(path, text):
            raise MonkeyError(
                f"{path} is there already, and is another file than `monkey init --ci` writes; nothing was written",
                hint="rename it, run this again, and compare the two: what you had added can be added again",
            )
    for name in missing:
        make_project_directory((top / name).parent, top)
        write_atomically(top / name, files[name])
    for name in files:
        click.echo(f"{'Wrote' if name in missing else 'Kept'} {name}.", err=True)


def _is_of_others(path: Path, text: str) -> bool:
    """Return whether another hand wrote what is there."""
    if not os.path.lexists(path):
        return False
    return path.is_symlink() or not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text


def list_steps(needs: CiNeeds, store: str, files: list[str]) -> list[str]:
    """Return what is left to do by hand, as a shell script whose comments say why."""
    steps = [*_list_environments(needs), *_list_keys(needs), *_list_variables(needs), *_list_logins(needs)]
    if roles := list_role_commands(needs, store):
        steps += ["", "# Two roles, so that a pull request's job cannot write: one reads, one applies.", *roles]
        if needs.forge == "github":
            steps.append("# For previews: a third role, for the subject …:environment:monkey-preview.")
    label = f"A pull request with the label {PREVIEW_LABEL} gets a preview, if monkey.yaml has previews:."
    begin = [
        "# What is left to do by hand. docs/ci.md explains each step.",
        *(_SHARED if needs.slug else []),
        *_SCRATCH,
    ]
    return [*begin, *([] if needs.forge == "gitea" else _ASK), *steps, *_commit(needs, files), f"# {label}"]


_SHARED = [
    "# Projects of one repository share its secrets, variables, environments and schedules. Where another has them,",
    "# run no line that would replace or double them: docs/ci.md says what to do instead.",
]

#: Code of a spec without `code:` is all that lies in the tree, and `git add` takes it, too.
_SCRATCH = [
    "",
    "# Keys are made outside of the tree, which jobs get as code. They are removed when this shell ends.",
    "keys=$(mktemp -d) && trap 'rm -r -- \"$keys\"' EXIT",
]
_ASK = [
    "# Values that only you know are asked for. Paste each, then Enter and Ctrl-D; or put `cat FILE` for `ask …`.",
    'ask() { echo "$*: paste it, then press Enter and Ctrl-D" >&2; printf \'%s\' "$(cat)"; }',
]


def _commit(needs: CiNeeds, files: list[str]) -> list[str]:
    lines = [""]
    if needs.forge == "gitlab" and PIPELINE not in files:
        lines += [
            f"# {PIPELINE} is there already, and stays as it is. Give it these lines, where it lacks them:",
            *(f"#   {line}" for line in [*INCLUDE, STAGES]),
            f"# Its workflow: must let pipelines run for merge requests, for schedules and for {needs.branch}.",
        ]
    own = "monkey.yaml" if needs.directory == "." else f"{needs.directory}/monkey.yaml"
    names = " ".join(shlex.quote(f":/{name}") for name in [own, *files])
    return [
        *lines,
        f"# Pull requests are planned by the monkey.yaml of {needs.branch}, never by their own: commit it with these.",
        f"git add {names} && git commit -m 'Sweeps are planned and applied by CI' && git push",
    ]


def _list_environments(needs: CiNeeds) -> list[str]:
    repo = needs.repository or "OWNER/NAME"
    if needs.forge == "github":
        at = f"repos/{repo}/environments/monkey-apply"
        policy = "deployment_branch_policy"
        policy = f"'{policy}[protected_branches]=false' -F '{policy}[custom_branch_policies]=true'"
        return [
            "",
            f"# Secrets of the environment monkey-apply are for {needs.branch} alone, or all branches could read them.",
            f"gh api -X PUT '{at}' -F {policy}",
            f"gh api '{at}/deployment-branch-policies' -f {shlex.quote(f'name={needs.branch}')}",
            f"gh api -X PUT 'repos/{repo}/environments/monkey-preview'  # then give it required reviewers",
        ]
    if needs.forge == "gitlab":
        return [
            "",
            f"# Protect {needs.branch} (Settings, Repository), and make two schedules (Build, Pipeline schedules):",
            "glab schedule create --description notify --cron '*/15 * * * *' --ref " + shlex.quote(needs.branch),
            f"glab schedule create --description drift --cron '23 3 * * *' --ref {shlex.quote(needs.branch)}"
            " --variable MONKEY_JOB:drift",
            "# Two access tokens of the project, with the scope api, write comments and statuses. The first has the",
            "# role Developer. The second is for apply alone, and has a role that may merge, as Maintainer:",
            "# GitLab takes statuses of a protected branch's commits from no lesser one.",
            *(_ask_secret(needs, "GITLAB_TOKEN", scope) for scope in ("", "monkey-apply")),
        ]
    return [
        "",
        "# Secrets and variables: the repository's Settings, Actions. Gitea gives them to all branches but forks'.",
    ]


def _list_keys(needs: CiNeeds) -> list[str]:
    lines = ["", "# Keys that sign what CI applies. Your machines obey them from your next `monkey apply` on."]
    for key, environment in (("ci", "monkey-apply"), ("preview", "monkey-preview")):
        if needs.forge == "gitea" and key == "preview":
            continue
        file = f'"$keys/{key}_key"'
        lines.append(f"ssh-keygen -q -t ed25519 -N '' -C {key}@{needs.project} -f {file} &&")
        lines.append(f"  {_set_secret(needs, 'MONKEY_SIGNING_KEY', f'cat {file}', environment)} &&")
        lines.append(f"  monkey trust {file}.pub")
    lines += [
        "# Whose sweeps CI continues: its own keys, yours, and colleagues' (the second line of their `monkey trust`).",
        _set_variable(needs, "MONKEY_SIGNERS", '{ cat "$keys"/*_key.pub; monkey trust | sed -n 2p; }'),
    ]
    return lines


def _list_variables(needs: CiNeeds) -> list[str]:
    if not needs.endpoints:
        return []
    return [
        "",
        "# Endpoints that get credentials: monkey.yaml alone is not enough, since a branch may change it.",
        _set_variable(needs, "MONKEY_TRUSTED_ENDPOINTS", f"echo {shlex.quote(' '.join(needs.endpoints))}"),
    ]


#: Login to its secrets, and to its variables.
_NEEDED = {
    "aws-keys": (("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ()),
    "gcp-keys": (("GOOGLE_CREDENTIALS",), ()),
    "azure-keys": (("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"), ()),
    "ssh-key": (("MONKEY_SSH_KEY",), ("MONKEY_SSH_HOSTS",)),
}


def _list_logins(needs: CiNeeds) -> list[str]:
    once = "Gitea has one for all jobs." if needs.forge == "gitea" else "A plan only reads: give it lesser ones."
    asked = any(login in _NEEDED for login in needs.logins)
    lines = ["", f"# Credentials of the store and of the hosts. {once}"] if asked else []
    for login in needs.logins:
        secrets, variables = _NEEDED.get(login, ((), ()))
        if needs.forge == "gitlab" and login == "gcp-keys":
            secrets = ("GOOGLE_APPLICATION_CREDENTIALS",)
        for name in secrets:
            scopes = ("",) if needs.forge == "gitea" else ("", "monkey-apply", "monkey-preview")
            lines += [_ask_secret(needs, name, scope) for scope in scopes]
        for name in variables:
            lines += ["# Lines of known_hosts: ssh-keyscan HOST.", _set_variable(needs, name, _ask(needs, name))]
    return lines


#: Secrets that GitLab hands over as files.
_FILES = ("MONKEY_SIGNING_KEY", "MONKEY_SSH_KEY", "GOOGLE_APPLICATION_CREDENTIALS")


def _ask(needs: CiNeeds, name: str) -> str:
    """Return the command that prints what only the user knows; Gitea's page asks for it."""
    return "" if needs.forge == "gitea" else f"ask {name}"


def _ask_secret(needs: CiNeeds, name: str, environment: str) -> str:
    return _set_secret(needs, name, _ask(needs, f"{name} of {environment}" if environment else name), environment)


def _set_secret(needs: CiNeeds, name: str, source: str, environment: str) -> str:
    """Return the command that hands what `source` prints to the forge: no value is in a file of the tree."""
    if needs.forge == "gitea":
        return _show(f"secret {name}", source)
    if needs.forge == "gitlab":
        form = "--type file" if name in _FILES else "--masked"
        scope = (
            f" --scope {environment}" + (" --protected" if environment == "monkey-apply" else "") if environment else ""
        )
        return f"{source} | glab variable set {name} {form}{scope}"
    return f"{source} | gh secret set {name}{f' --env {environment}' if environment else ''}"


def _set_variable(needs: CiNeeds, name: str, source: str) -> str:
    if needs.forge == "gitea":
        return _show(f"variable {name}", source)
    return f"{source} | {'glab' if needs.forge == 'gitlab' else 'gh'} variable set {name}"


def _show(what: str, source: str) -> str:
    """Return the command that prints what to paste at Gitea; a comment where only the user knows it."""
    return f"echo 'The {what}:' && {source}" if source else f"# The {what}."
