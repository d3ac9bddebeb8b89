"""Keeps quick tests quick: one that takes much CPU fails, unless it is listed; the dearest are named at the end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator

import pytest
from hypothesis import find
from hypothesis import strategies as st

#: Seconds of CPU that a quick test may take, with the processes that it waited for; and the Python that they are of.
LIMIT, PYTHON = 2.0, (3, 11)
#: How many times LIMIT a test may take before it fails: the same test takes up to half as much again from run to run.
TOLERANCE = 1.5
#: Rounds of work, and the seconds that they take where LIMIT was set.
ROUNDS, ROUNDS_SECONDS = 1_000, 0.12
#: How the names of quick tests begin that may take more, with the reason.
DEARER = {
    "tests/acceptance/": "the main job, by the real CLI and agents",
    "tests/conformance/test_exporter.py": "kills real servers and exporters",
    "tests/conformance/test_create.py::test_against_a_rival_one_wins": "writers race many times",
    "tests/conformance/test_store.py::test_of_many_at_once_one_wins": "150 writers at once try again as others answer",
    "tests/simulation/test_protocol.py::test_a_few_seeds_break_nothing_and_replay": "a short simulation",
    "tests/unit/cli/test_page_link.py": "a server, and five verbs by the real CLI",
    "tests/unit/cli/render/curves/test_picture_plot.py": "imports matplotlib",
    "tests/unit/cli/test_cloud_setup.py": "imports the clouds' libraries",
    "tests/unit/results/comparison/test_paired_test.py::test_seeds_that_differ": "imports scipy",
    "tests/unit/results/comparison/test_sweep_comparison.py::test_jobs_are_paired_as_pandas": "imports pandas",
    "tests/unit/results/test_result_chart.py::test_means_are_drawn": "imports pandas and scipy",
    "tests/unit/transfer/code/test_code_snapshot.py::test_a_file_that_is_written": "reads until a writer has its turn",
    "tests/unit/store/directory/test_store.py::test_directories_that_somebody_nested": "1,500 directories deep",
    "tests/unit/monkey_agent/test_deep_trees.py": "walks a thousand directories deep",
    "tests/unit/test_house": "reads all of the source",
}


def measure_cpu() -> float:
    """Return the seconds of CPU that this process and the children it waited for have taken."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure_slowness() -> float:
    """Return how many times as long as where LIMIT was set this machine takes now; neighbours slow all that runs."""
    work = {str(n): [n, f"name {n}", {"half": n / 2}] for n in range(100)}
    before = measure_cpu()
    for _ in range(ROUNDS):
        json.loads(json.dumps(work))
    return max(1.0, (measure_cpu() - before) / ROUNDS_SECONDS)


@pytest.fixture(scope="session", autouse=True)
def unicode_table() -> None:
    """Have Hypothesis make its table of Unicode: two seconds once, which no test is to pay for."""
    find(st.text(), lambda _: True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a quick test that took too much."""
    before = measure_cpu()
    outcome = yield
    taken = measure_cpu() - before
    item.user_properties.append(("cpu", taken))
    listed = item.nodeid.startswith(tuple(DEARER))
    quick = item.get_closest_marker("slow") is None and not listed and sys.version_info[:2] == PYTHON
    if quick and taken > TOLERANCE * LIMIT and taken > TOLERANCE * LIMIT * measure_slowness():
        what = "make it smaller, mark it slow, or list it in tests/quick.py"
        pytest.fail(f"{taken:.1f} s of CPU; a quick test takes at most {LIMIT:g}: {what}")
    return outcome


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the quick tests that took more than half of what they may, the dearest first."""
    quick = [one for one in terminalreporter.getreports("passed") if "slow" not in one.keywords]
    taken = sorted(((dict(one.user_properties).get("cpu", 0.0), one.nodeid) for one in quick), reverse=True)
    for cpu, name in taken:
        if cpu > LIMIT / 2:
            terminalreporter.write_line(f"{cpu:.1f} s of CPU: {name}")
