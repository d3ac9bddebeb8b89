"""The slots of agents that share a machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.monkey_agent.slots.slot_site import SlotSite


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SlotSite]:
    made = SlotSite(tmp_path)
    yield made
    for home in made.homes.values():
        home.close()
