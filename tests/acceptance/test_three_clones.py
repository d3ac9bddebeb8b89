"""Three clones, one remote, one store: random steps, of which a second reader says what each must have done.

Ten histories take half a minute; `--seeds 200` takes more of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clones.campaign import Campaign
from tests.clones.history import History

FEW, STEPS = 10, 20


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        one = metafunc.config.getoption("--seed")
        asked = metafunc.config.getoption("--seeds") or FEW
        metafunc.parametrize("seed", range(asked) if one is None else [one])


@pytest.fixture(scope="module")
def campaign() -> Iterator[Campaign]:
    """Yield what holds for all histories; and print what they met."""
    made = Campaign()
    yield made
    for server in made.servers:
        server.close()
    print(f"\n{dict(sorted(made.counts.items()))}")


@pytest.mark.slow
def test_no_revision_is_lost_and_a_digest_is_consent_to_one_plan(seed: int, tmp_path: Path, campaign: Campaign) -> None:
    History(tmp_path, seed, campaign).run(STEPS)
    campaign.counts["histories"] += 1
