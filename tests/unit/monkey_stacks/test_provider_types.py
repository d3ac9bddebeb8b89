"""What a state names must be what its type of provider makes."""

from __future__ import annotations

import pytest

from monkey.errors import FleetError
from monkey_stacks import provider_types
from monkey_stacks.engine.engine_outcome import StateResource

HOST = StateResource("pulumi-python:dynamic/monkey_stacks.ssh.program:Host", "gpu1", "1")
GROUP = StateResource("aws:autoscaling/group:Group", "group", "2")


def test_what_the_type_of_provider_makes_is_taken() -> None:
    provider_types.check_provider_type((HOST, HOST), "ssh", "lab")
    provider_types.check_provider_type((), "gcp", "lab")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([GROUP], "provider 'lab' is of type ssh now, and has machines of type aws still"),
        ([HOST, GROUP], "names 'group' of type 'aws:autoscaling/group:Group', which monkey does not make"),
        (
            [HOST, StateResource("evil:index:Thing", "thing", "3")],
            r"machines/lab/state .* names 'thing' of type 'evil:",
        ),
        ([StateResource("evil:index:Thing", "thing", "3")], "which monkey does not make"),
    ],
)
def test_what_it_does_not_make_is_told(known: list[StateResource], expected: str) -> None:
    with pytest.raises(FleetError, match=expected):
        provider_types.check_provider_type(known, "ssh", "lab")
