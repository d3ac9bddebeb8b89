"""The real agent and protocol under faults, on virtual time: what must never happen, and what must be seen."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import coverage
import pytest

import monkey.protocol
from tests.simulation.campaign import Campaign, campaign, results
from tests.simulation.mutants import CAUGHT, SAFETY
from tests.simulation.story import play
from tests.simulation.world import Weather

#: Seeds within which every mutant of safety must be caught.
ENOUGH = 2_000

#: Seeds that showed a fault once: 1194, a goal that a job reached for another sweep after it had failed for this one.
#: 1002827, pilots whose time was too short to be sure that an agent was gone, and to run its job then.
FOUND = (1194, 9583, 1002827)

#: Seeds that take every branch between them, of the hundreds that it took in their order: measuring makes them slow.
ALL_BRANCHES = (13, 44, 12, 18, 22, 288, 295, 30, 296, 4, 310, 26, 34, 14, 21, 28, 35, 58, 74, 287, 77, 162, 16, 49)

#: A campaign that did not see each of these has not tested what it says.
MUST_SEE = (
    "lost",
    "late",
    "answer lost",
    "spurious",
    "twice",
    "outage",
    "crash",
    "loss of power",
    "pause while asking again",
    "stale listing",
    "concurrent apply",
    "pause of a machine",
    "freeze by the supervisor",
    "freeze",
    "resumption",
    "not launched",
    "begun after a claim ahead",
    "begun in line",
    "claimed ahead, never begun",
    "given up while it was prepared",
    "exit of an earlier life",
    "nonfinite seen",
    "roster",
    "takeover",
    "takeover on the same machine",
    "takeover of one that got on",
    "takeover after a long lease",
    "handover",
    "revision",
    "retry",
    "pause",
    "resume",
    "cancel",
    "order obeyed",
    "fail_fast",
    "stopped by a condition",
    "begun again after a condition",
    "goal reached",
    "extend",
    "expiry obeyed",
    "opened after it expired",
    "commit seen",
    "entry skipped",
    "entry replayed",
    "entry of a stranger",
    "stop forged",
    "hint forged",
    "ended with its pilot's time",
    "released for a machine with more time",
    "cut off",
    "got on between two pilots",
)


#: Nothing but what a scenario adds; jobs that last.
QUIET: dict[str, Any] = {
    "fault_rate": 0,
    "orders": False,
    "crashes": False,
    "pauses": False,
    "flaky": False,
    "expires": False,
    "pilots": False,
    "jobs": (100, 300),
}


#: Worse than any day: for corners that are met seldom.
ROUGH = Weather(fault_rate=0.6, pause_every=100, calm_from=2500)


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> object:
    """Print past pytest's capture: a campaign's numbers are its result."""

    def show(name: str, total: Campaign) -> None:
        with capsys.disabled():
            print(f"\n{name}: {total.report()}")

    return show


@pytest.mark.slow
def test_nothing_breaks_the_protocol(seeds: range, whole: bool, shown: object) -> None:
    total = campaign(seeds)
    assert callable(shown)
    shown("protocol", total)
    assert not total.bad, total.report()
    if whole:
        assert [name for name in MUST_SEE if not total.counts[name]] == []


def test_a_few_seeds_break_nothing_and_replay(whole: bool) -> None:
    if not whole:
        pytest.skip("one seed is played again")
    seeds = (*range(5), *FOUND)
    elsewhere = list(results(seeds))
    assert elsewhere == [play(seed) for seed in seeds]
    assert not any(result.violations for result in elsewhere)


@pytest.mark.slow
def test_nothing_breaks_the_protocol_where_one_agent_lists_for_all(seeds: range, shown: object) -> None:
    total = campaign(range(seeds.start, seeds.start + max(1, len(seeds) // 4)), None, Weather(crowd=True))
    assert callable(shown)
    shown("roster", total)
    assert not total.bad, total.report()
    assert total.counts["roster"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAFETY)
def test_a_mutant_of_safety_breaks_an_invariant(name: str, whole: bool) -> None:
    if not whole:
        pytest.skip("one seed is played again")
    for result in results([CAUGHT.get(name, 0), *range(ENOUGH)], name):
        if result.violations:
            return
    pytest.fail(f"{name} went unnoticed in {ENOUGH} seeds")


@pytest.mark.slow
def test_a_store_that_is_away_for_ten_minutes_costs_no_execution() -> None:
    weather = Weather(outage=(100, 700), calm_from=800, **QUIET)
    total = campaign(range(20), None, weather)
    assert not total.bad, total.report()
    assert total.counts["outage"]
    assert total.counts["resumption"]
    assert total.executions == total.jobs


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [(0.5, 9), (0.01, 0.09)], ids=["short", "in line"])
def test_a_crash_costs_no_more_than_what_was_running(jobs: tuple[float, float]) -> None:
    weather = Weather(**{**QUIET, "crashes": True, "jobs": jobs}, agents=1, power=False, outage=(0, 0))
    sound, forgetful = (list(results(range(20), name, weather)) for name in (None, "forgetful"))
    assert [result for result in sound if result.dear or result.violations] == []
    assert sum(result.counts["exit of an earlier life"] for result in sound)
    assert sum(result.executions for result in forgetful) > sum(result.executions for result in sound)


@pytest.mark.slow
def test_taking_an_unknown_outcome_for_lost_costs_executions() -> None:
    weather = Weather(**{**QUIET, "fault_rate": 0.3}, outage=(0, 0))
    sound, mutant = campaign(range(15), None, weather), campaign(range(15), "unknown_is_lost", weather)
    assert not sound.bad, sound.report()
    assert mutant.executions_a_job > 1.1 * sound.executions_a_job


@pytest.mark.slow
def test_going_by_old_observations_after_a_gap_costs_executions() -> None:
    weather = Weather(agents=4, outage=(60, 180), calm_from=300, **QUIET)
    sound = campaign(range(20), None, weather)
    assert not sound.bad, sound.report()
    assert sound.executions == sound.jobs
    caught = [CAUGHT["no_gap_reset"], *range(ENOUGH)]
    assert any(result.executions > result.jobs for result in results(caught, "no_gap_reset", weather))


@pytest.mark.slow
def test_every_branch_of_the_protocol_is_reached(whole: bool, tmp_path: Path) -> None:
    if not whole:
        pytest.skip("one seed is played again")
    package = Path(monkey.protocol.__file__).parent
    measure = coverage.Coverage(branch=True, include=[f"{package}/*"], data_file=None)
    for lot in (ALL_BRANCHES, *(range(first, first + 24) for first in range(0, 720, 24))):
        measure.start()
        for seed in lot:
            play(seed, ROUGH if seed % 2 else None)
        measure.stop()
        measure.json_report(outfile=str(tmp_path / "coverage.json"))
        files = json.loads((tmp_path / "coverage.json").read_text())["files"]
        missed = {Path(name).name: arcs for name, told in files.items() if (arcs := _unreached(Path(name), told))}
        if not missed:
            return
    assert missed == {}


#: Modules that only spell keys and check shapes: tests/unit/protocol takes every branch of theirs. So it does of what
#: jobs log, which tests/simulation/test_records.py plays.
SPELLING = (
    "layout.py",
    "revision_shape.py",
    "entry_shape.py",
    "end_files.py",
    "end_files_reading.py",
    "history_parts.py",
    "packed_segments.py",
    "shipment.py",
    "shipment_reading.py",
)

#: Functions for those who look at a store: tests/unit and tests/acceptance call them. And those of the log of stops, in
#: which few of these stories have two agents at once: tests/unit/protocol/sweeps/test_stop_log.py takes each branch.
LOOKING = (
    *("total_seconds", "locate_output", "ship", "view", "list_revisions", "_bound"),
    *("is_foreign", "_refresh_signers", "tally", "with_revision", "_check_revision", "_read_seen"),
    *("hosts", "list_agents", "find_success", "find_ended", "compute_round", "longest_lease"),
    *("at_seconds", "count_ended"),
    *("append_stop", "apply_stop"),
)


def _unreached(path: Path, told: dict[str, Any]) -> list[list[int]]:
    """Return the branches inside functions that no seed took (module level ran at import, before the measuring)."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in LOOKING:
            inside |= set(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    lines = [[line] for line in told["missing_lines"] if line in inside]
    return [] if path.name in SPELLING else lines + [arc for arc in told["missing_branches"] if arc[0] in inside]
