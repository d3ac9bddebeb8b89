"""What a name says of a file that is being written."""

from __future__ import annotations

import pytest

from monkey_agent.checkpoints.directory_scan import is_aside


@pytest.mark.parametrize(
    "path",
    [
        "state.tmp",
        "a/state.pt.tmp",
        "state.pt.tmp.4711",
        "state.temp",
        "state_tmp",
        ".state.tmp-x1y2",
        "tmp",
        ".tmp-state.pt",
        "tmp-step-7/weights",
        "step-7.tmp/weights.bin",
        "step-7.orbax-checkpoint-tmp-1700000000/array",
        "tmpx1y2z3ab",
        "state.part",
        "state.partial",
        ".incomplete",
        "state.incomplete",
        "state.new",
        "state.pt~",
        ".#state",
    ],
)
def test_names_of_what_is_half_written(path: str) -> None:
    assert is_aside(path)


@pytest.mark.parametrize(
    "path",
    [
        "state",
        "state.pt",
        "newest",
        "template.json",
        "attempt",
        "party",
        "model-part-2.bin",
        "part-00001.bin",
        "temperature_0.5.pt",
        "scan_temp_0.5.pt",
        "step-7/weights.bin",
    ],
)
def test_names_that_say_nothing(path: str) -> None:
    assert not is_aside(path)
