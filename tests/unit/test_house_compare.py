"""What docs/compare.md says of monkey in its tables: each cell has its proof, a test that would fail without it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A cell to the tests that hold it, as `PATH::TEST` below tests/.
PROOFS = {
    "a spec: parameters and a command": ["unit/test_house_docs.py::test_specs_in_the_docs_run_where_they_are_pasted"],
    "yes": [
        "acceptance/test_verbs.py::test_saved_plan_is_applied_as_shown_or_refused",
        "page/test_page_story.py::test_a_running_sweep_is_watched_and_steered",
    ],
    "nothing": [
        "acceptance/test_crash.py::test_apply_that_dies_leaves_the_sweep_running",
        "acceptance/test_crash.py::test_kill_of_all_three_times_then_of_agent_and_supervisor",
    ],
    "this one, SSH hosts, Slurm, Kubernetes, AWS, Google": [
        "acceptance/test_all_providers.py::test_one_sweep_runs_on_four_kinds_of_machines_at_once",
        "acceptance/test_rented.py::test_machines_are_rented_work_and_are_gone",
        "acceptance/test_rented_gcp.py::test_machines_boot_give_back_and_leave",
    ],
    "by content": [
        "acceptance/test_verbs.py::test_second_apply_does_nothing_and_says_so_quickly",
        "acceptance/test_verbs.py::test_added_value_runs_only_the_new_jobs",
    ],
    "`when`, `zip`, `include`, `exclude`": [
        "unit/spec/sweep/test_expand.py::test_when_leaves_a_parameter_out_and_equal_jobs_are_one",
        "unit/spec/sweep/test_expand.py::test_zip_varies_together_where_its_first_parameter_stands",
        "unit/spec/sweep/test_expand.py::test_include_adds_jobs_that_are_not_there_yet",
        "unit/spec/sweep/test_expand.py::test_exclude_matches_what_it_names",
    ],
    "grid, random; conditions that end a job": [
        "unit/spec/sweep/test_expand.py::test_a_grid_is_the_product",
        "unit/spec/sweep/test_expand.py::test_equal_random_draws_are_one_job",
        "acceptance/test_stop_when.py::test_jobs_end_by_their_conditions_and_go_on_when_these_change",
    ],
}


def read_own_cells() -> list[str]:
    """Return the cells of the rows that are about monkey."""
    lines = (ROOT / "docs/compare.md").read_text().splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| **monkey**")]
    assert len(rows) == 2, "one row a table"
    return [cell.strip() for row in rows for cell in row[1:]]


def test_what_the_tables_say_of_monkey_is_held_by_tests() -> None:
    assert set(read_own_cells()) == set(PROOFS)
    for proof in (proof for proofs in PROOFS.values() for proof in proofs):
        path, _, name = proof.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / path).read_text(), proof


def test_tables_fit_the_page() -> None:
    lines = (ROOT / "docs/compare.md").read_text().splitlines()
    assert max(line.count("|") for line in lines) == 6, "five columns"
