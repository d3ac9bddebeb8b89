"""What is said of a comparison: to people, to programs, and at a forge, where nothing that users wrote is obeyed."""

from __future__ import annotations

import json

import pytest
from markdown_it import MarkdownIt

from monkey.errors import MonkeyError
from monkey.plan.text.inert_markdown import MAX_COMMENT_CHARACTERS
from monkey.results.comparison.compared_metric import ComparedMetric, select_metric
from monkey.results.comparison.comparison_report import format_comparison_markdown, serialize_comparison
from monkey.results.comparison.comparison_table import (
    explain_columns,
    format_heading,
    format_overall,
    format_verdict,
    list_left_out,
    tabulate_comparison,
)
from monkey.spec.job.recipe import SweepSettings
from tests.unit.results.comparison.compared import compared, logged, sides
from tests.unit.results.sample_results import Job
from tests.unit.results.test_result_report import HOSTILE

LOSS = SweepSettings(metric="loss", take="best")
ACC = SweepSettings(metric="acc", maximize=True)


def value(role: str, lr: float, seed: int) -> Job:
    worse = lr * (role == "HEAD") + 0.001 * seed * (role == "HEAD")
    return logged(0.5 + 0.01 * (seed * 7 % 5) - worse)[0]


def test_people_read_a_line_for_each_configuration() -> None:
    found = compared(*sides(lambda r, j: value(r, j["lr"], j["seed"]), lr=[0.0, 0.1, 0.2], seed=range(3)), limit=0.05)
    made = tabulate_comparison(found)
    assert made.names == ("lr", "BASE", "HEAD", "Δ", "n", "r", "verdict")
    assert made.rows == (
        ("0.1", "0.52", "0.419", "-0.1010 ± 0.0025", "3", "+1.00", "✗ worse"),
        ("0.2", "0.52", "0.319", "-0.2010 ± 0.0025", "3", "+1.00", "✗ worse"),
        ("0.0", "0.52", "0.519", "-0.0010 ± 0.0025", "3", "+1.00", "~ no verdict"),
    )
    assert tabulate_comparison(found, signs=False).rows[0][-1] == "worse"
    assert format_heading(found) == "base@1 → head@1: acc (more is better)"
    assert "worse by more than 0.05 or better: the whole interval after Holm's correction for 3" in explain_columns(
        found
    )
    assert format_verdict(found) == "regression: HEAD is worse by more than 0.05 (2 of 3 configurations)"
    over = "over all: Δ -0.10 ± 0.25 over the means of 3 configurations, 9 pairs: no verdict; correlation within"
    assert format_overall(found) == f"{over} configurations +1.00"


def test_a_configuration_alone_has_no_line_over_all_and_no_parameter() -> None:
    found = compared(*sides(lambda r, j: value(r, 0, j["seed"]), lr=[0.1], seed=range(3)))
    assert tabulate_comparison(found).names[0] == "BASE" and format_overall(found) == ""
    two = compared(*sides(lambda r, j: value(r, 0, j["seed"]), lr=[0.1, 0.2], seed=range(3)))
    assert format_overall(two).startswith("over all: Δ -0.001 over the means of 2 configurations, 6 pairs (three make")


def test_left_out_jobs_are_counted_by_kind_and_some_are_named() -> None:
    found = compared(*sides(lambda r, j: Job("failed" if r == "HEAD" else "running"), lr=[0.1], seed=range(5)))
    ids = [one.job for one in found.unpaired if one.role == "BASE"]
    assert f"not paired: 5 of BASE: running ({', '.join(ids[:3])}, …)" in list_left_out(found)
    assert "not paired: 5 of HEAD: failed" in list_left_out(found)[1]


def test_programs_get_every_pair_and_valid_json() -> None:
    found = compared(*sides(lambda r, j: value(r, j["lr"], j["seed"]), lr=[0.0, 0.1], seed=range(3)))
    read = json.loads(json.dumps(serialize_comparison(found), allow_nan=False))
    assert (read["verdict"], read["limit"], read["overall"]["low"]) == ("regression", 0.0, None)
    (worst, _) = read["configurations"]
    assert worst["low"] < worst["delta"] < worst["high"] < 0 and worst["worse"] <= 0.025 < worst["better"]
    assert [pair["seed"] for pair in worst["pairs"]] == [{"seed": 0}, {"seed": 1}, {"seed": 2}]
    none = serialize_comparison(compared(*sides(lambda r, j: Job("failed"), lr=[0.1], seed=range(3))))
    assert none["configurations"][0]["delta"] is None and len(none["unpaired"]) == 6


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_that_users_wrote_is_more_than_text_at_a_forge(hostile: str) -> None:
    def of(role: str, job: dict[str, object]) -> Job:
        return Job(hostile) if job["seed"] == 3 else logged(1.0)[0]

    text = format_comparison_markdown(compared(*sides(of, **{hostile: [hostile, "b"]}, seed=range(4))))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = {token.type for each in tokens for token in [each, *(each.children or [])]}
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "fence"}
    assert sum(token.type == "table_open" for token in tokens) == 1
    outside = "".join(token.content for each in tokens for token in each.children or [] if token.type == "text")
    assert "@everyone" not in outside and "\u202e" not in text


def test_a_comment_has_room_for_a_comparison_of_any_size() -> None:
    found = compared(*sides(lambda r, j: value(r, 0, j["seed"]), lr=range(400), name=["x" * 5_000, "y"], seed=range(3)))
    text = format_comparison_markdown(found)
    assert len(text) <= MAX_COMMENT_CHARACTERS and "… and 770 more" in text


def test_the_metric_and_its_goal_are_those_of_heads_spec() -> None:
    assert select_metric(LOSS, ACC) == ComparedMetric("acc", maximize=True, take="last")
    assert select_metric(LOSS, SweepSettings()) == ComparedMetric("loss", maximize=False, take="best")
    assert select_metric(LOSS, ACC, "loss") == ComparedMetric("loss", maximize=False, take="best")
    last = SweepSettings(metric="loss")
    assert (select_metric(LOSS, last).take, select_metric(last, LOSS).take) == ("last", "best")
    assert select_metric(LOSS, ACC, "f1", "maximize") == ComparedMetric("f1", maximize=True, take="last")
    with pytest.raises(MonkeyError, match="f1: neither spec ranks by it, so which way is better is not known"):
        select_metric(LOSS, ACC, "f1")
    with pytest.raises(MonkeyError, match="loss: more is better by the spec of one side"):
        select_metric(LOSS, SweepSettings(metric="loss", maximize=True))
    with pytest.raises(MonkeyError, match="which metric"):
        select_metric(SweepSettings(), SweepSettings())
