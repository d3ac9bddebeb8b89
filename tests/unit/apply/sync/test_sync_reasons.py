"""The reasons of a sync are one line each: with the hint, and without the line of the file and its caret."""

from __future__ import annotations

from monkey.apply.sync.sync_reasons import explain_error
from monkey.errors import EndpointRefused, MonkeyError, Problem, SpecError

PROBLEM = Problem("monkey.yaml", 6, 9, "not there", "write it", source="forge: {api: x}")


def test_a_mistake_in_a_file_is_said_with_its_place_and_hint_alone() -> None:
    assert explain_error(EndpointRefused(problem=PROBLEM)) == "monkey.yaml:6:9: not there; write it"
    later = Problem("monkey.yaml", 7, 1, "neither")
    assert explain_error(SpecError([PROBLEM, later])) == "monkey.yaml:6:9: not there; write it (and 1 more)"


def test_the_hint_of_every_error_is_said() -> None:
    assert explain_error(MonkeyError("no spec\nhere", hint="name it by --path")) == "no spec here; name it by --path"
    assert explain_error(EndpointRefused("the environment names it")) == "the environment names it"
    assert explain_error(OSError("disk\nfull")) == "disk full"
