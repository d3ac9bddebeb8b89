"""A comparison: which jobs are a pair, what is said of each configuration, and when it is no success."""

from __future__ import annotations

import random
from dataclasses import replace
from math import sqrt
from statistics import variance
from typing import Any

import pytest

from monkey.errors import MonkeyError
from monkey.results.comparison.job_pairs import filter_sides
from monkey.results.comparison.sweep_comparison import ComparisonMark, ComparisonVerdict, SweepComparison
from monkey.results.t_interval import find_t_quantile
from tests.unit.plan.making import grid
from tests.unit.results.comparison.compared import compared, logged, side, sides
from tests.unit.results.sample_results import Job, metric

SEEDS = [0.90, 0.93, 0.88, 0.91, 0.95]


def at(value: float) -> Job:
    return logged(value)[0]


def marks(comparison: SweepComparison) -> dict[Any, str]:
    return {each.parameters.get("lr"): str(each.mark) for each in comparison.configurations}


def shifted(shift: dict[float, float], wobble: float = 0.001, **values: Any) -> SweepComparison:
    """Compare sides in which HEAD differs by `shift` of its lr, and a little by seed."""

    def of(role: str, job: dict[str, Any]) -> Job:
        moved = shift.get(job["lr"], 0.0) + wobble * (-1) ** job["seed"]
        return at(SEEDS[job["seed"]] + (moved if role == "HEAD" else 0.0))

    return compared(*sides(of, lr=[*shift], seed=range(5)), **values)


def test_jobs_are_paired_by_parameters_and_then_by_seed_whatever_their_order() -> None:
    jobs = grid(lr=[0.1, 0.2], seed=range(3))
    base = side("BASE", jobs, logged(1, 2, 3, 4, 5, 6))
    turned = [dict(reversed(job.items())) for job in reversed(jobs)]
    head = side("HEAD", turned, logged(66, 55, 44, 33, 22, 11))
    found = compared(base, head)
    pairs = {
        each.parameters["lr"]: [(*p.seed.values(), p.base, p.head) for p in each.pairs] for each in found.configurations
    }
    assert pairs == {
        0.2: [(2, 6, 66), (1, 5, 55), (0, 4, 44)],
        0.1: [(2, 3, 33), (1, 2, 22), (0, 1, 11)],
    }
    assert not found.unpaired and found.pairs == 6


def test_a_configuration_that_is_worse_is_a_regression_and_stands_first() -> None:
    found = shifted({0.1: 0.0, 0.2: -0.02, 0.3: 0.02})
    assert marks(found) == {0.2: "worse", 0.1: "no verdict", 0.3: "better"}
    assert found.verdict is ComparisonVerdict.REGRESSION and not found.doubts
    assert shifted({0.1: -0.02}, limit=0.05).verdict is ComparisonVerdict.NONE
    assert shifted({0.1: 0.02}).verdict is ComparisonVerdict.NONE


def test_holm_counts_the_configurations_that_were_looked_at() -> None:
    """Each interval alone excludes 0; of twenty such, one is no news."""
    alone = shifted({0.1: -0.002})
    (one,) = alone.configurations
    assert one.spread is not None and one.spread.ci95 is not None
    assert one.spread.mean + one.spread.ci95 < 0 and one.mark is ComparisonMark.WORSE
    among = shifted({0.1: -0.002, **{0.2 + lr / 100: 0.0 for lr in range(19)}})
    assert marks(among)[0.1] == "no verdict" and among.configurations[0].spread is not None


def test_holm_does_not_count_configurations_that_are_the_same_jobs() -> None:
    jobs = grid(lr=[0.1, *range(1, 20)], seed=range(5))
    base = side("BASE", jobs, [at(SEEDS[job["seed"]]) for job in jobs])
    lost = [at(SEEDS[job["seed"]] - (0.002 + 0.001 * (-1) ** job["seed"]) * (job["lr"] == 0.1)) for job in jobs]
    head = side("HEAD", jobs, lost)
    assert marks(compared(base, head))[0.1] == "no verdict"
    rows = zip(base.results.table.ids, head.results.table.ids, jobs, strict=True)
    adopted = {new: old for old, new, job in rows if job["lr"] != 0.1}
    assert marks(compared(base, replace(head, adopted=adopted)))[0.1] == "worse"


def test_over_all_the_configurations_are_the_unit_and_not_the_jobs() -> None:
    """Twelve pairs agree within each configuration; the three configurations do not."""
    found = shifted({0.1: -0.03, 0.2: 0.01, 0.3: 0.012})
    assert found.overall is not None and found.overall.spread.n == 3
    assert found.overall.mark is ComparisonMark.UNSURE
    all_worse = shifted({lr / 10: -0.002 - lr / 10_000 for lr in range(1, 9)}, wobble=0.01)
    assert all_worse.overall is not None and all_worse.overall.mark is ComparisonMark.WORSE
    assert ComparisonMark.WORSE not in all_worse.counts and all_worse.verdict is ComparisonVerdict.REGRESSION
    assert shifted({0.1: 0.0}).overall is None
    two = shifted({0.1: 0.0, 0.2: 0.0}).overall
    assert two is not None and two.mark is ComparisonMark.UNKNOWN


def test_fewer_than_three_seeds_are_too_few_to_say() -> None:
    found = compared(*sides(lambda role, job: at(0.9 if role == "BASE" else 0.1), lr=[0.1], seed=range(2)))
    assert found.verdict is ComparisonVerdict.UNKNOWN
    assert found.doubts == ["1 of 1 configuration has fewer than 3 pairs"]
    none = compared(*sides(lambda role, job: at(job["lr"]), lr=[0.1, 0.2, 0.3]))
    assert none.verdict is ComparisonVerdict.UNKNOWN and none.overall is not None
    few = "3 of 3 configurations have fewer than 3 pairs, as no parameter repeats them (--seed names one)"
    assert none.doubts == [few]


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (Job("failed"), "1 failed"),
        (Job("running"), "1 running"),
        (Job("queued"), "1 queued"),
        (Job(metrics={"acc": metric(None, best=0.9, nonfinite=1)}), "1 succeeded (diverged)"),
        (Job(metrics={"loss": metric(1.0)}), "1 succeeded without logging acc"),
        (Job(metrics={"acc": metric(10**400)}), "1 succeeded without a value of acc that can be compared"),
    ],
)
def test_a_job_of_head_without_a_value_is_said_and_no_success(lost: Job, said: str) -> None:
    def of(losing: str) -> Any:
        return lambda role, job: lost if role == losing and job["seed"] == 4 else at(SEEDS[job["seed"]])

    found = compared(*sides(of("HEAD"), lr=[0.1], seed=range(5)))
    assert found.verdict is ComparisonVerdict.UNKNOWN
    assert found.doubts == [f"1 job of HEAD has no value where BASE's count: {said}"]
    assert [(one.role, f"1 {one.why}") for one in found.unpaired] == [("HEAD", said)]
    # BASE's own loss hides nothing that HEAD does; it is said as well.
    other = compared(*sides(of("BASE"), lr=[0.1], seed=range(5)))
    assert other.verdict is ComparisonVerdict.NONE
    assert [(one.role, f"1 {one.why}") for one in other.unpaired] == [("BASE", said)]


def test_where_both_jobs_are_lost_both_are_named() -> None:
    lost = {"BASE": Job("failed"), "HEAD": Job("running")}
    found = compared(*sides(lambda r, j: lost[r] if j["seed"] == 4 else at(0.9), lr=[0.1], seed=range(5)))
    assert [(one.role, one.why) for one in found.unpaired] == [("BASE", "failed"), ("HEAD", "running")]
    assert found.verdict is ComparisonVerdict.NONE


def test_what_only_one_side_has_is_listed() -> None:
    base = side("BASE", grid(lr=[0.1, 0.2], seed=range(3)), logged(*[0.9] * 6))
    head = side("HEAD", grid(lr=[0.1, 0.3], seed=range(4)), logged(*[0.9] * 8))
    found = compared(base, head)
    assert marks(found) == {0.1: "no verdict"}
    listed = sorted((one.role, one.parameters["lr"], one.parameters["seed"], one.why) for one in found.unpaired)
    assert listed == [
        *(("BASE", 0.2, seed, "") for seed in range(3)),
        ("HEAD", 0.1, 3, ""),
        *(("HEAD", 0.3, seed, "") for seed in range(4)),
    ]


def number_sides(draws: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return jobs of both sides: random values of one parameter, spelled as whole numbers or with a point."""
    values = [0, 0.5, 1, 1.5, 2, -1, 2**53, 1e300]
    found = []
    for _ in range(2):
        chosen = draws.sample(values, 5)
        spelled = [draws.choice([value, float(value)]) for value in chosen]
        found.append(
            grid(lr=[-0.0 if value == 0 and draws.random() < 0.3 else value for value in spelled], seed=range(3))
        )
    return found[0], found[1]


@pytest.mark.needs("pandas")
def test_jobs_are_paired_as_pandas_joins_numbers_whether_they_are_written_with_a_point_or_not() -> None:
    import pandas

    draws = random.Random(13)
    for _ in range(30):
        jobs = number_sides(draws)
        base, head = (side(role, of, logged(*range(len(of)))) for role, of in zip(("BASE", "HEAD"), jobs, strict=True))
        frames = [pandas.DataFrame(of).assign(at=range(len(of))).astype({"lr": float}) for of in jobs]
        joined = frames[0].merge(frames[1], on=["lr", "seed"], how="outer", indicator=True)
        both = joined[joined["_merge"] == "both"]
        expected = sorted(zip(both["at_x"], both["at_y"], strict=True))
        found = compared(base, head)
        assert sorted((pair.base, pair.head) for each in found.configurations for pair in each.pairs) == expected
        lost = joined["_merge"].map({"left_only": "BASE", "right_only": "HEAD"}).dropna()
        assert sorted(one.role for one in found.unpaired) == sorted(lost)
        assert bool(found.doubts) is bool(len(lost))


def test_one_is_not_true_and_a_side_that_tells_1_from_1_0_is_paired_as_it_is_written() -> None:
    base = side("BASE", grid(x=[1], seed=range(3)), logged(1, 2, 3))
    assert compared(base, side("HEAD", grid(x=[True], seed=range(3)), logged(1, 2, 3))).pairs == 0
    nested = side("BASE", grid(x=[[1, {"a": 0}]], seed=range(3)), logged(1, 2, 3))
    assert compared(nested, side("HEAD", grid(x=[[1.0, {"a": 0.0}]], seed=range(3)), logged(1, 2, 3))).pairs == 3
    both = compared(base, side("HEAD", grid(x=[1.0, 1], seed=range(3)), logged(9, 9, 9, 1, 2, 3)))
    assert [(pair.base, pair.head) for each in both.configurations for pair in each.pairs] == [(1, 1), (2, 2), (3, 3)]
    assert both.doubts == ["3 jobs of HEAD have no partner in BASE"]


def test_what_has_no_partner_may_hide_a_regression() -> None:
    """HEAD drops the configuration in which it is bad, or writes its value another way."""
    base = side("BASE", grid(lr=["a", "b"], seed=range(3)), logged(*[0.9] * 6))
    smaller = compared(base, side("HEAD", grid(lr=["a"], seed=range(3)), logged(*[0.9] * 3)))
    assert smaller.verdict is ComparisonVerdict.UNKNOWN
    assert smaller.doubts == ["3 jobs of BASE have no partner in HEAD"]
    renamed = compared(base, side("HEAD", grid(lr=["a", "B"], seed=range(3)), logged(*[0.9] * 3, *[0.1] * 3)))
    assert renamed.verdict is ComparisonVerdict.UNKNOWN
    assert renamed.doubts == ["3 jobs of HEAD have no partner in BASE", "3 jobs of BASE have no partner in HEAD"]
    # What failed, too: no job of BASE says how it should have been.
    failed = compared(base, side("HEAD", grid(lr=["a", "b", "c"], seed=[0]), [*logged(0.9, 0.9), Job("failed")]))
    assert "1 job of HEAD has no partner in BASE" in failed.doubts
    # A regression that is shown goes before all doubts.
    worse = compared(base, side("HEAD", grid(lr=["a"], seed=range(3)), logged(*[0.1] * 3)))
    assert worse.verdict is ComparisonVerdict.REGRESSION


def test_a_grid_that_grew_is_compared_where_both_sides_have_it() -> None:
    base = side("BASE", grid(lr=[0.1, 0.2], seed=range(3)), logged(*[0.9] * 6))
    head = side("HEAD", grid(lr=[0.1, 0.2, 0.3], clip=[1], seed=range(4)), logged(*[0.9] * 12))
    assert compared(base, head, "clip").verdict is ComparisonVerdict.UNKNOWN
    chosen = filter_sides(base, head, "lr < 0.3 and seed < 3")
    assert compared(*chosen, "clip").verdict is ComparisonVerdict.NONE
    assert compared(*chosen, "clip").pairs == 6
    with pytest.raises(MonkeyError, match=r"--where 'acc > 0.5': unknown parameter 'acc'"):
        filter_sides(base, head, "acc > 0.5")


def test_no_configuration_in_common_is_no_success_and_says_which_parameters_differ() -> None:
    base = side("BASE", grid(wd=[1e-6], lr=[1], seed=range(3)), logged(1, 2, 3))
    head = side("HEAD", grid(wd=[1e-4], lr=[1], seed=range(3)), logged(1, 2, 3))
    found = compared(base, head)
    assert found.verdict is ComparisonVerdict.UNKNOWN
    assert found.doubts == [
        "BASE and HEAD have no configuration in common: wd is 1e-06 in BASE, 0.0001 in HEAD; add --ignore wd"
    ]
    assert marks(compared(base, head, "wd")) == {1: "no verdict"}
    new = side("HEAD", grid(lr=[1], seed=range(3), clip=[5]), logged(1, 2, 3))
    assert "wd is 1e-06 in BASE, absent in HEAD" in compared(base, new).doubts[0]
    assert compared(base, new, "wd", "clip").pairs == 3


def test_values_of_both_sides_differ_in_what_is_said_of_them() -> None:
    before, after = ("mistralai/Mistral-7B-Instruct-v0.2", "mistralai/Mistral-7B-Instruct-v0.3")
    base = side("BASE", grid(model=[before], seed=range(3)), logged(1, 2, 3))
    head = side("HEAD", grid(model=[after], seed=range(3)), logged(1, 2, 3))
    (said,) = compared(base, head).doubts
    assert "v0.2 in BASE" in said and "v0.3 in HEAD" in said


def test_seeds_that_do_not_meet_are_no_pairs() -> None:
    base = side("BASE", grid(lr=[1], seed=[0, 1, 2]), logged(1, 2, 3))
    head = side("HEAD", grid(lr=[1], seed=[3, 4, 5]), logged(1, 2, 3))
    found = compared(base, head)
    assert marks(found) == {1: "too few to say"} and found.pairs == 0 and len(found.unpaired) == 6
    assert found.verdict is ComparisonVerdict.UNKNOWN and found.correlation is None


def test_what_repeats_a_job_may_have_another_name() -> None:
    base, head = sides(lambda role, job: at(job["trial"]), lr=[0.1], trial=range(3))
    assert compared(base, head).verdict is ComparisonVerdict.UNKNOWN
    assert marks(compared(base, head, seeds=("trial",))) == {0.1: "no verdict"}
    folds = compared(*sides(lambda role, job: at(job["data.fold"]), lr=[0.1], **{"data.fold": range(3)}))
    assert [pair.seed for pair in folds.configurations[0].pairs] == [{"data.fold": fold} for fold in range(3)]


def test_what_is_ignored_must_not_make_two_jobs_one() -> None:
    base, head = sides(lambda role, job: at(0.9), lr=[0.1, 0.2], seed=range(3))
    with pytest.raises(MonkeyError, match=r"--ignore lr: jobs \w{16} and \w{16} of BASE .* would be one"):
        compared(base, head, "lr")
    with pytest.raises(MonkeyError, match="--ignore: there is no 'lx'"):
        compared(base, head, "lx")
    with pytest.raises(MonkeyError, match="--seed: there is no 'sed'"):
        compared(base, head, seeds=("sed",))


def test_the_same_jobs_are_nothing_to_compare_however_few() -> None:
    jobs = grid(lr=[0.1, 0.2], seed=range(2))
    base, head = (side(role, jobs, logged(1, 2, 3, 4), code="c") for role in ("BASE", "HEAD"))
    found = compared(base, head)
    assert {*marks(found).values()} == {"same jobs"} and found.verdict is ComparisonVerdict.NONE
    assert found.overall is not None and found.overall.mark is ComparisonMark.SAME and found.correlation is None
    # A job that adopts the other's result has that result.
    other = side("HEAD", jobs, logged(1, 2, 3, 4))
    ids = base.results.table.ids, other.results.table.ids
    adopting = replace(other, adopted=dict(zip(ids[1], ids[0], strict=True)))
    assert {*marks(compared(base, adopting)).values()} == {"same jobs"}
    assert {*marks(compared(base, other)).values()} == {"too few to say"}


def test_values_near_the_largest_float_are_compared_without_an_overflow() -> None:
    found = compared(
        *sides(lambda r, j: at((1 if r == "BASE" else -1) * 3e307 * (1 + j["seed"] / 9)), lr=[1], seed=range(4))
    )
    assert marks(found) == {1: "worse"}


def test_pairing_narrows_an_interval_where_noise_is_shared_and_widens_it_where_it_is_opposed() -> None:
    """Intervals of eight seeds, beside those that the same values would give unpaired."""
    draws = random.Random(3)
    for shared, narrower in ((0.9, True), (-0.6, False)):
        ratios = []
        for _ in range(100):
            noise = [draws.gauss(0, 1) for _ in range(8)]
            heads = [shared * z + sqrt(1 - shared**2) * draws.gauss(0, 1) for z in noise]
            values = {"BASE": noise, "HEAD": heads}
            found = compared(*sides(lambda r, j, v=values: at(v[r][j["seed"]]), lr=[1], seed=range(8)))
            (one,) = found.configurations
            assert one.spread is not None and one.spread.ci95 is not None and one.correlation is not None
            unpaired = find_t_quantile(14) * sqrt((variance(noise) + variance(heads)) / 8)
            ratios.append(one.spread.ci95 / unpaired)
        assert (sorted(ratios)[50] < 0.5) if narrower else (sorted(ratios)[50] > 1.2)


def test_without_a_difference_few_comparisons_find_one() -> None:
    """At most 5 of 100 may; the bound is three standard deviations above. Uncorrected, about 26 would."""
    draws, runs = random.Random(5), 150
    false = uncorrected = 0
    for _ in range(runs):
        found = compared(*sides(lambda r, j: at(draws.gauss(0, 1)), lr=range(12), seed=range(4)))
        false += found.verdict is ComparisonVerdict.REGRESSION
        uncorrected += any(each.test is not None and each.test.worse <= 0.025 for each in found.configurations)
    assert 100 * false / runs <= 5 + 300 * sqrt(0.05 * 0.95 / runs)
    assert uncorrected > 3 * false


@pytest.mark.parametrize(
    ("images", "accuracy", "digits"),
    [(20, 0.9, 9), (50, 0.98, 9), (100, 0.98, 9), (500, 0.95, 2), (10_000, 0.95, 1)],
)
def test_a_metric_of_few_digits_is_no_regression_by_itself(images: int, accuracy: float, digits: int) -> None:
    """Of 60 configurations of three seeds, some have three equal differences: a third to a half of the comparisons."""
    draws, runs = random.Random(5), 30

    def draw(_: str, __: dict[str, Any]) -> Job:
        # The number of right ones is nearly normal; logged with few digits, it has few values.
        right = round(draws.gauss(images * accuracy, sqrt(images * accuracy * (1 - accuracy))))
        return at(round(min(right, images) / images, digits))

    found = [compared(*sides(draw, lr=range(60), seed=range(3))) for _ in range(runs)]
    false = sum(each.verdict is ComparisonVerdict.REGRESSION for each in found)
    assert 100 * false / runs <= 5 + 300 * sqrt(0.05 * 0.95 / runs)


def test_three_equal_differences_of_one_step_are_no_evidence_among_several_configurations() -> None:
    """Twelve configurations of accuracies over 100 images; of one, all three seeds have one image less."""
    seen = {"BASE": [0.97, 0.98, 0.99], "HEAD": [0.98, 0.99, 0.97]}

    def of(role: str, job: dict[str, Any]) -> Job:
        if job["lr"] == 3:
            return at([0.98, 0.98, 0.99][job["seed"]] - (0.01 if role == "HEAD" else 0))
        return at(seen[role][job["seed"]])

    found = compared(*sides(of, lr=range(12), seed=range(3)))
    assert found.verdict is ComparisonVerdict.NONE
    [one] = [each for each in found.configurations if each.parameters["lr"] == 3]
    assert one.spread is not None and one.spread.mean == pytest.approx(-0.01)
    # Student's t of two degrees, times 0.4 steps, over the root of three.
    assert one.spread.ci95 == pytest.approx(4.302653 * 0.4 * 0.01 / sqrt(3))


def test_values_that_no_seed_changes_are_exact() -> None:
    found = compared(*sides(lambda r, j: at(1.0 if r == "HEAD" and j["lr"] else 2.0), lr=[0, 1], seed=range(3)))
    assert marks(found) == {0: "no verdict", 1: "worse"}
