"""The pull request that a CI run is about, and what is said there; in other runs, the run's own summary is written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from monkey.ci_run import CiRun, read_ci_run
from monkey.forge.forge_port import Forge, PullRequest, StatusState
from monkey.forge.secret_text import mask_secrets
from monkey.spec.project.project import find_root
from monkey.transfer.code.git_files import find_work_tree

#: Where GitHub, Gitea and Forgejo name a file whose Markdown is shown with the run.
_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class PullReview:
    """Where a plan is reviewed: a pull request at a forge, or nowhere."""

    run: CiRun
    environ: Mapping[str, str]
    #: None: nothing can be written there, for the reason `lacks`.
    forge: Forge | None = None
    lacks: str = ""
    #: The pull request; None: it is not known yet, and the run's number names it.
    pull: PullRequest | None = None
    #: The project's directory in the repository, "" for all of it: each project has statuses of its own.
    directory: str = ""

    def write(self, key: str, text: str) -> None:
        """Write the comment `key`; where there is no pull request to write to, say why, and write the run's summary.

        Secrets are masked: many more read a comment than a log.
        """
        text = mask_secrets(text, self.environ)
        number = self.pull.number if self.pull else self.run.pull
        if self.forge is None or number is None:
            click.echo(f"no comment was written: {self.lacks}", err=True)
            _append_summary(self.environ, text)
        elif self.pull or self._is_newest(self.forge, number):
            click.echo(f"commented: {self.forge.write_comment(number, key, text)}", err=True)
        else:
            click.echo("no comment was written: the pull request has a newer commit", err=True)

    def set_status(self, context: str, state: StatusState, text: str) -> None:
        """Set the project's status of the run's commit."""
        if self.forge is not None:
            said = mask_secrets(text, self.environ)
            self.forge.set_status(self.run.commit, self.name_status(context), state, said, self.run.url)

    def name_status(self, context: str) -> str:
        """Return a status's context as the project has it: "monkey/plan", or "monkey/plan/DIRECTORY" below the top."""
        return f"{context}/{self.directory}" if self.directory else context

    def _is_newest(self, forge: Forge, number: int) -> bool:
        """Is our commit the pull request's head? A late run of an older one must not replace the newer's comment."""
        pull = forge.read_pull(number)
        return pull is None or pull.commit == self.run.commit

    @property
    def footer(self) -> str:
        """Which commit this is of, and a link to the run."""
        parts = [f"commit {self.run.commit[:10]}"] if re.fullmatch(r"[0-9a-f]{40,64}", self.run.commit) else []
        parts += [f"[run]({self.run.url})"] if re.fullmatch(r"https?://[\w.:/~%-]+", self.run.url) else []
        return f"\n<sub>{' · '.join(parts)}</sub>\n" if parts else ""


def open_pull_review(environ: Mapping[str, str] | None = None) -> PullReview:
    """Return the review of the pull request that this process's CI run is about. Raises ForgeError."""
    review = _open_review(os.environ if environ is None else environ)
    if review.forge is not None and review.run.pull is None:
        return replace(review, forge=None, lacks="this run is about no pull request")
    return review


def open_apply_review(environ: Mapping[str, str] | None = None) -> PullReview:
    """Return the review of the pull request that brought this CI run's commit into its branch. Raises ForgeError."""
    review = _open_review(os.environ if environ is None else environ)
    if review.forge is None:
        return review
    merged = [pull for pull in review.forge.list_pulls_of(review.run.commit) if pull.is_merged]
    lacks = "" if merged else "no pull request brought this commit"
    return replace(review, pull=merged[0] if merged else None, lacks=lacks)


def _open_review(environ: Mapping[str, str]) -> PullReview:
    # It brings an HTTP client, for which a plan without a comment need not wait.
    from monkey.forge.open_forge import MONKEY_TOKEN, TOKENS, open_forge

    run = read_ci_run(environ)
    if run is None or run.forge is None:
        return PullReview(CiRun(), environ, lacks="this is no CI run of GitHub, Gitea, Forgejo or GitLab")
    if run.fork:
        return PullReview(run, environ, lacks="the pull request is of a fork, whose runs may not write")
    forge = open_forge(run, environ)
    names = " or ".join((*TOKENS[run.forge], MONKEY_TOKEN))
    lacks = "" if forge else f"no token is here; set {names} in this step's `env:`"
    return PullReview(run, environ, forge, lacks, directory=_find_directory(Path.cwd()))


def _find_directory(start: Path) -> str:
    """Return the directory of the project around `start`, from the top of its work tree; "" for the top itself."""
    root, top = find_root(start).resolve(), find_work_tree(start)
    return "" if top is None or root == top else root.relative_to(top).as_posix()


def _append_summary(environ: Mapping[str, str], text: str) -> None:
    if path := environ.get(_SUMMARY_VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n\n")
