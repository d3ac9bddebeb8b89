"""Which of several sweeps has the slots, by the ledger that their jobs keep."""

from __future__ import annotations

import pytest

from tests.acceptance.shop import Shop, until


@pytest.mark.parametrize("cap", ["", "max_concurrent_jobs: 1\n"], ids=["uncapped", "capped"])
def test_a_more_urgent_sweep_does_not_wait_for_one_whose_jobs_are_over_in_a_moment(shop: Shop, cap: str) -> None:
    many, few = 3000, 4
    shop.spec(f"command: [sh, -c, 'echo {{i}} >> {shop.ledger.directory}/low; sleep 0.02']\n", jobs=many, name="low")
    shop.spec(
        f"command: [sh, -c, 'echo {{i}} >> {shop.ledger.directory}/high; sleep 0.2']\npriority: 5\n{cap}",
        jobs=few,
        name="high",
    )
    low, high = (shop.ledger.directory / name for name in ("low", "high"))
    shop.run("apply", "--detach", "specs/low.yaml")
    until(low.exists, "the less urgent sweep's jobs run")
    shop.run("apply", "specs/high.yaml")
    assert len(high.read_text().split()) == few
    assert len(low.read_text().split()) < many / 2, "it did not wait until they were done"
    shop.run("cancel", "low")
