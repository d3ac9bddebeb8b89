"""Reasons of cancelled previews: those of a closed pull request, and what a person gave."""

from __future__ import annotations

import pytest

from monkey.plan.preview.preview_ends import LEFT_OUT, explain_closed_pull, is_preview_end


@pytest.mark.parametrize(
    ("sweep", "reason", "expected"),
    [
        ("pr-12.digits", explain_closed_pull(12), True),
        ("pr-12.digits", LEFT_OUT, True),
        ("pr-12.digits", explain_closed_pull(13), False),
        ("pr-12.digits", "too dear", False),
        ("digits", explain_closed_pull(12), False),
    ],
)
def test_only_the_end_of_its_pull_request_ends_a_preview(sweep: str, reason: str, expected: bool) -> None:
    assert is_preview_end(sweep, reason) is expected
