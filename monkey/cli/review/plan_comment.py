"""`monkey plan --comment`: the plan, or why there is none, on its pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from monkey.cli.review.approval import PLAN_STATUS, format_status
from monkey.cli.review.pull_review import PullReview, open_pull_review
from monkey.cli.session import find_project
from monkey.errors import ForgeError, MonkeyError
from monkey.plan.change import Plan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.text.inert_markdown import format_code_block, replace_hidden
from monkey.plan.text.lines import summarize_plan
from monkey.plan.text.markdown import format_markdown


@dataclass(frozen=True)
class PlanComment:
    """The comment of one project's plans on one pull request."""

    review: PullReview
    key: str

    def show_plan(self, plan: Plan) -> None:
        """Write the plan there, and its digest into the commit's status. Raises ForgeError."""
        text, summary = format_markdown(plan, self.review.run), summarize_plan(plan)
        # A plan without the store is no plan to agree to.
        digest = compute_plan_digest(plan) if plan.observed else ""
        self.review.write(self.key, text)
        self.review.set_status(PLAN_STATUS, "success", format_status(digest, summary) if digest else summary)

    def show_failure(self, exc: Exception) -> None:
        """Write there why there is no plan: the last good one is not what would be applied."""
        said = _describe_failure(exc)
        text = f"### monkey plan: failed\n\n{format_code_block(replace_hidden(said), '')}"
        self.review.write(self.key, text + self.review.footer)
        self.review.set_status(PLAN_STATUS, "failure", said.partition("\n")[0])


@contextmanager
def open_comment() -> Iterator[PlanComment]:
    """Give the comment for a plan that is made within; where it fails, that is written there. Raises ForgeError."""
    review = open_pull_review()
    comment = PlanComment(review, f"plan:{_find_name(review)}")
    try:
        yield comment
    except (ForgeError, click.ClickException):
        raise
    except Exception as exc:
        try:
            comment.show_failure(exc)
        except ForgeError as unsaid:
            # Why there is no plan is what its reader came for; that the forge refused comes second.
            click.echo(f"no comment was written: {unsaid}", err=True)
        raise


def _describe_failure(exc: Exception) -> str:
    if isinstance(exc, MonkeyError):
        return f"{exc.message}\nhint: {exc.hint}" if exc.hint else exc.message
    if isinstance(exc, OSError):
        return exc.strerror or type(exc).__name__
    return f"{type(exc).__name__}: a bug in monkey; the run's log shows where"


def _find_name(review: PullReview) -> str:
    """Return the project's name, so well as that is possible where monkey.yaml is what is wrong."""
    try:
        return find_project().name
    except (MonkeyError, OSError):
        pass
    try:
        text = Path("monkey.yaml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^project:\s*[\"']?([\w.-]+)", text, re.MULTILINE)
    return found[1] if found else review.run.repository.rpartition("/")[2]
