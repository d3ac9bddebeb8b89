"""A sweep's preview: its name, its jobs and its limits."""

from __future__ import annotations

from typing import Any

import pytest

from monkey.errors import PlanError
from monkey.plan.compute_plan import compute_plan
from monkey.plan.observed import ObservedProject
from monkey.plan.preview.capped_sweep import limit_sweep
from monkey.plan.text.lines import format_sweep_plan
from monkey.plan.text.markdown import format_markdown
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.expires import Expiry
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.project.preview_limits import PreviewLimits
from tests.unit.plan.making import grid, want

LIMITS = PreviewLimits(4, 4, 2, 3600.0, ("lab", "local"), None, ("KEY",))
JOBS = grid(lr=[1, 2, 3], seed=range(3))
NOW = 1000.0


def settings(**about: Any) -> SweepSettings:
    found = limit_sweep(want(JOBS, settings=SweepSettings(**about)), 12, LIMITS, (), NOW)
    assert found is not None
    return found.settings


def test_jobs_keep_their_ids_under_another_name() -> None:
    whole = want(JOBS, equivalences=[Equivalence(renamed={"rate": "lr"})])
    capped = limit_sweep(whole, 12, LIMITS, (), NOW)
    assert capped is not None and capped.name == "pr-12.digits" and capped.source == whole.source
    assert [capped.table.parameters(row) for row in range(4)] == grid(lr=[1, 3], seed=[0, 2])
    ids = dict(zip(whole.table.ids, JOBS, strict=True))
    assert [ids[job] for job in capped.table.ids] == grid(lr=[1, 3], seed=[0, 2])
    assert list(capped.table.columns["lr"].values) == [1, 3] and capped.recipe == whole.recipe
    assert not capped.equivalences


def test_only_what_the_sweep_lacks_is_run() -> None:
    whole = want(JOBS)
    lacking = limit_sweep(whole, 12, LIMITS, whole.table.ids[:6], NOW)
    assert lacking is not None
    assert [lacking.table.parameters(row) for row in range(len(lacking.table))] == grid(lr=[3], seed=range(3))
    assert limit_sweep(whole, 12, LIMITS, whole.table.ids, NOW) is None


@pytest.mark.parametrize(
    ("asked", "effective"),
    [
        ({}, {"max_concurrent_jobs": 2, "expires": Expiry(after=3600.0), "priority": -1000, "providers": ["local"]}),
        ({"max_concurrent_jobs": 1, "priority": 9}, {"max_concurrent_jobs": 1, "priority": -1000}),
        ({"max_concurrent_jobs": 100}, {"max_concurrent_jobs": 2}),
        ({"expires": Expiry(after=60.0)}, {"expires": Expiry(after=60.0)}),
        ({"expires": Expiry(after=9e6)}, {"expires": Expiry(after=3600.0)}),
        ({"expires": Expiry(at=NOW + 5)}, {"expires": Expiry(at=NOW + 5)}),
        ({"expires": Expiry(at=NOW + 3601)}, {"expires": Expiry(after=3600.0)}),
        ({"providers": ["gpus", "lab"]}, {"providers": ["lab"]}),
        ({"secrets": ["KEY"]}, {"secrets": ["KEY"]}),
    ],
)
def test_the_lower_of_both_limits_holds(asked: dict[str, Any], effective: dict[str, Any]) -> None:
    found = settings(**asked)
    assert {name: getattr(found, name) for name in effective} == effective


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ({"providers": ["gpus"]}, r"a provider on which previews may run \(lab, local\), found gpus", "providers: "),
        ({"providers": ["lab..p5.48xlarge"]}, r"a provider .*, found lab..p5.48xlarge", "that a spec chooses"),
        (
            {"secrets": ["KEY", "OTHER"]},
            r"no secret but those that previews may have \(KEY\), found OTHER",
            "secrets: ",
        ),
    ],
)
def test_what_a_preview_may_not_have_is_refused(asked: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(PlanError, match=f"specs/digits.yaml: expected {message}") as caught:
        settings(**asked)
    assert hint in (caught.value.hint or "")


def test_the_plan_says_that_it_is_a_preview_and_how_much_of_what() -> None:
    capped = limit_sweep(want(JOBS), 12, PreviewLimits(4, 4, 2, 3600.0, ("local",), 5.0), (), NOW)
    assert capped is not None
    plan = compute_plan([capped], ObservedProject())
    words = (
        "preview of pull request 12: 4 of 9 jobs that no sweep has yet; at most 2 at once on local; "
        "ends 1h after it is applied, for at most $5.00 of rent"
    )
    assert format_sweep_plan(plan.sweeps[0])[0].text == words and f"# {words}\n" in format_markdown(plan)
    late = limit_sweep(want(JOBS, settings=SweepSettings(expires=Expiry(at=NOW + 5))), 12, LIMITS, (), NOW)
    assert late is not None and "ends at 1970-01-01 00:16 UTC" in late.about
