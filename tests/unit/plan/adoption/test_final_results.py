"""Chains of adoptions: followed to a finished job, whatever anybody wrote."""

from __future__ import annotations

import time
from itertools import pairwise

from monkey.plan.adoption.final_results import FinalResults, collect_adoptions, trace_results
from monkey.plan.observed import ObservedProject
from tests.unit.plan.making import seen
from tests.unit.plan.planning import JOBS


def test_a_chain_leads_to_the_job_that_has_finished() -> None:
    finals = FinalResults(({"a": "b", "b": "c"}, {"x": "a"}), {"c"})
    assert [finals.find(job) for job in "abcx"] == ["c"] * 4
    assert finals.find("unknown") is None


def test_a_circle_and_a_chain_into_nothing_lead_nowhere() -> None:
    finals = FinalResults(({"a": "b", "b": "a", "self": "self", "c": "d", "into": "a"},), set())
    assert [finals.find(job) for job in ("a", "b", "self", "c", "into")] == [None] * 5


def test_a_job_that_has_finished_stands_for_itself() -> None:
    assert FinalResults(({"a": "b"},), {"a", "b"}).find("a") == "a"


def test_a_chain_that_is_long_is_walked_once() -> None:
    jobs = [f"{at:016x}" for at in range(100_000)]
    began = time.process_time()
    finals = FinalResults((dict(pairwise(jobs)),), {jobs[-1]})
    assert {finals.find(job) for job in jobs} == {jobs[-1]}
    assert time.process_time() - began < 5


def test_the_log_counts_before_the_sweep_s_own_revision_and_that_before_others() -> None:
    sweeps = {
        "other": seen(JOBS, adopted={"a": "1", "b": "1", "c": "1"}),
        "digits": seen(JOBS, adopted={"a": "2", "b": "2"}),
    }
    observed = ObservedProject(sweeps, {"1", "2", "3"}, adoptions={"a": "3"})
    finals = trace_results(observed, collect_adoptions(observed), "digits")
    assert [finals.find(job) for job in "abc"] == ["3", "2", "1"]
    assert trace_results(ObservedProject(), {}, "digits").empty
