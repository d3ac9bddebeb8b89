"""Identity: the fast way against the plain one, and golden ids that must never change."""

from __future__ import annotations

import hashlib
import json
import time
from array import array
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.spec.job.job_id import assign_job_ids, dump_canonical_json
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn, ParameterValue, nest_parameters
from monkey.spec.job.recipe import Recipe
from monkey.spec.sweep.expand import expand_spec
from tests.unit.spec.making import spec, table

RECIPE = Recipe(command="python train.py --lr {lr}", code="c" * 64, env={"B": "é", "A": '"'}, outputs=["model.npz"])


def plain(recipe: Recipe, parameters: dict[str, ParameterValue]) -> str:
    """What the definition says, word for word."""
    job = {**recipe.to_json(), "parameters": nest_parameters(parameters)}
    text = json.dumps(job, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_golden_ids_never_change() -> None:
    text = """\
        parameters:
          lr: [0.01, 1e-05]
          opt: {parameters: {name: [adam, "é\\n"], beta: {value: [0.9, 0.999]}}}
          aux: {value: {b: null, a: true}, when: lr < 0.001}
        """
    assert assign_job_ids(table(text), RECIPE).ids == GOLDEN
    assert assign_job_ids(table("command: 'true'"), RECIPE).ids == ["eacac8e93999fb2c"]


@pytest.mark.parametrize(
    ("command", "job"),
    [
        ("python a.py | tee log", "66ef3dc4b3c5e8ba"),
        ("python a.py; python b.py", "a3f23dcceb6487e7"),
        ("python a.py\npython b.py\n", "7fc056d731d42210"),
        ("a & b & wait", "9507e3bdc1242b08"),
        ("a || true", "4c4a44228c8228af"),
        ("set +e; a {lr}; exit $?", "b6fdb2d7875e42e6"),
    ],
)
def test_how_a_script_is_run_is_no_part_of_its_job_s_id(command: str, job: str) -> None:
    """Scripts ran under `sh -c` when these ids were taken: what finished then is not run again."""
    assert assign_job_ids(table("parameters: {lr: 0.1}"), replace(RECIPE, command=command)).ids == [job]


GOLDEN = ["3336508fb77eabdc", "1d3190f0cf9f9f24", "fdccb4418b223eac", "bc001709b396a88a"]

names = st.sampled_from(["a", "b", "z", "A", "a1", "o.a", "o.b", "o.p.x", "o.p.y", "q.r.s", "parameters", "B.z"])
words = st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def tables(draw: st.DrawFn) -> JobTable:
    rows = draw(st.integers(0, 5))
    columns = {}
    for name in draw(st.lists(names, unique=True, max_size=6)):
        distinct: list[Any] = draw(st.lists(values, min_size=1, max_size=4))
        index = draw(st.lists(st.integers(ABSENT, len(distinct) - 1), min_size=rows, max_size=rows))
        columns[name] = ParameterColumn(distinct, array("i", index))
    return JobTable(ids=[""] * rows, columns=columns)


@given(tables())
def test_the_fast_way_is_the_plain_way(jobs: JobTable) -> None:
    assert assign_job_ids(jobs, RECIPE).ids == [plain(RECIPE, jobs.parameters(row)) for row in range(len(jobs))]


def test_what_changes_an_identity() -> None:
    def job(text: str) -> str:
        made = spec(text)
        return assign_job_ids(expand_spec(made)[0], made.recipe("c" * 64)).ids[0]

    base = "name: a\ncommand: run {lr}\nparameters: {lr: 1}\n"
    same = ["priority: 3", "max_retries: 2", "timeout: 1h", "resources: {cpus: 2}", "provider: x", "metric: {name: a}"]
    other = ["env: {A: b}", "outputs: [a]", "environment: {python: '3.11'}", "# x\nenv: {A: c}"]
    assert {job(base + line) for line in same} | {job(base.replace("name: a", "name: b"))} == {job(base)}
    assert len({job(base + line) for line in other} | {job(base)}) == 5
    assert (
        len({job(base.replace("lr: 1", f"lr: {value}")) for value in ("1", "1.0", "true", "'1'", "{value: [1]}")}) == 5
    )


def test_order_of_parameters_and_outputs_is_no_matter() -> None:
    def ids(text: str) -> set[str]:
        made = spec(text)
        return set(assign_job_ids(expand_spec(made)[0], made.recipe("c")).ids)

    there = ids("parameters: {a: [1, 2], b: [3, 4]}\noutputs: [x, y]")
    assert ids("parameters: {b: [4, 3], a: [2, 1]}\noutputs: [y, x]") == there


def test_a_million_ids_take_seconds() -> None:
    made = table("parameters: {a: {range: [0, 1000]}, b: {range: [0, 100]}, c: [0.1, 0.2, 0.3, 0.4, 0.5]}")
    begin = time.process_time()
    ids = assign_job_ids(made, RECIPE).ids
    assert time.process_time() - begin < 4
    assert len(set(ids)) == 500_000


def test_canonical_json_has_one_form() -> None:
    assert dump_canonical_json({"b": [1, 1.0, "é"], "a": None}) == '{"a":null,"b":[1,1.0,"é"]}'


@pytest.mark.parametrize(
    ("name", "value"),
    [("a", "\ud800"), ("\ud800", 1), ("a", ["\ud800"]), ("a", {"b": {"\udfff": 1}}), ("a", [float("nan")])],
)
def test_a_stored_table_that_no_id_can_be_made_of_is_refused(name: str, value: ParameterValue) -> None:
    stored = JobTable(["0" * 16], {name: ParameterColumn([value], array("i", [0]))}).to_json()
    with pytest.raises(ValueError, match="no job's id can be made of"):
        JobTable.from_json(stored)


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a"), ("a.b.c", "x", "a"), ("a.b", "a.b.c.d"), ("", ".a")])
def test_a_stored_table_with_a_parameter_inside_another_is_refused(names: tuple[str, ...]) -> None:
    column = ParameterColumn([1], array("i", [0]))
    stored = JobTable(["0" * 16], dict.fromkeys(names, column)).to_json()
    with pytest.raises(ValueError, match="lies in another"):
        JobTable.from_json(stored)


def test_a_stored_table_with_names_that_only_begin_alike_is_read() -> None:
    column = ParameterColumn([1], array("i", [0]))
    stored = JobTable(["0" * 16], dict.fromkeys(("a", "ab", "b.a", "b.ab", "ab-.c"), column)).to_json()
    read = JobTable.from_json(stored)
    assert assign_job_ids(read, RECIPE).ids == [plain(RECIPE, read.parameters(0))]
