"""The digest that a pull request agreed to: a commit status keeps it, which only we set."""

from __future__ import annotations

import re

from monkey.forge.forge_port import Forge

#: Contexts of statuses: what a plan of the pull request's head is, and what became of it after the merge.
PLAN_STATUS, APPLY_STATUS = "monkey/plan", "monkey/apply"
_DIGEST = re.compile(r"([0-9a-f]{16}) ")


def format_status(digest: str, summary: str) -> str:
    """Return what a plan's status says: its digest first, which `read_approved_digest` reads."""
    return f"{digest} {summary}"


def read_approved_digest(forge: Forge, commit: str, context: str = PLAN_STATUS) -> str | None:
    """Return the digest of the plan that the commit's status has; None where no plan of ours succeeded there."""
    status = forge.read_status(commit, context)
    found = _DIGEST.match(status.text) if status is not None and status.state == "success" else None
    return found[1] if found else None
