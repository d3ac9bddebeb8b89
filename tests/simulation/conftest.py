"""How many seeds, and which: pytest tests/simulation --seeds 20000, or --seed 31 to play one again."""

from __future__ import annotations

import pytest

#: Seeds of a quick campaign.
FEW = 200


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    """The seeds of a campaign."""
    one = request.config.getoption("--seed")
    return range(one, one + 1) if one is not None else range(request.config.getoption("--seeds") or FEW)


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Is this a campaign, and not one seed played again?"""
    return request.config.getoption("--seed") is None
