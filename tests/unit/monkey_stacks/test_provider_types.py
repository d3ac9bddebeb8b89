"""A state of another type of provider's is told from one that was forged."""

from __future__ import annotations

import pytest

from monkey.errors import FleetError
from monkey_stacks import provider_types

HOST, GROUP, THING = "pulumi-python:dynamic/monkey:Host", "aws:autoscaling/group:Group", "evil:index:Thing"


@pytest.mark.parametrize(
    ("types", "type_"), [([HOST, HOST], "ssh"), ([], "gcp"), ([HOST, GROUP], "ssh"), ([GROUP], "")]
)
def test_what_the_type_of_provider_makes_is_no_other_s(types: list[str], type_: str) -> None:
    """What it does not make beside that is for the judge of the state to name."""
    provider_types.check_provider_type(types, type_, "lab")


def test_what_another_type_of_provider_makes_is_told() -> None:
    with pytest.raises(FleetError, match="provider 'lab' is of type ssh now, and has machines of type aws still"):
        provider_types.check_provider_type(["pulumi:pulumi:Stack", GROUP, THING], "ssh", "lab")
    assert provider_types.find_provider_type([THING, GROUP]) == "aws"
    assert provider_types.find_provider_type([THING]) == ""
