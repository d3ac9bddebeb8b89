"""Why previews are cancelled without that a person asked for it: a later commit may open them again."""

from __future__ import annotations

from monkey.spec.sweep.sweep_names import parse_preview_name

#: Of a spec that a later commit of the pull request no longer changes.
LEFT_OUT = "the pull request no longer previews it"


def explain_closed_pull(pull: int) -> str:
    """Return the reason with which the previews of a closed pull request are cancelled."""
    return f"pull request {pull} was closed"


def is_preview_end(sweep: str, reason: str) -> bool:
    """Tell whether a sweep is a preview that was cancelled for one of these reasons."""
    pull = parse_preview_name(sweep)
    return pull is not None and reason in (LEFT_OUT, explain_closed_pull(pull))
