"""Random grids with all that shapes them, against an enumerator that does it job by job, as docs/spec.md says."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest

from tests.unit.spec.making import jobs

Job = dict[str, Any]


def draw_spec(dice: random.Random) -> dict[str, Any]:
    """Return a spec of two to four parameters."""
    names = ["a", "b", "c", "d"][: dice.randint(2, 4)]
    parameters: dict[str, Any] = {name: dice.sample([0, 1, 2, 3, "x", "y"], dice.randint(1, 3)) for name in names}
    spec: dict[str, Any] = {}
    free = list(names)
    if len(names) > 2 and dice.random() < 0.5:
        pair = dice.sample(names, 2)
        length = len(parameters[pair[0]])
        parameters[pair[1]] = dice.sample([4, 5, 6, "z"], length)
        spec["zip"] = [pair]
        free = [name for name in names if name not in pair]
    if dice.random() < 0.5 and len(free) > 1:
        chooser, chosen = dice.sample(free, 2)
        value = json.dumps(dice.choice(parameters[chooser])).replace('"', "'")
        body: dict[str, Any] = {"values": parameters[chosen], "when": f"{chooser} == {value}"}
        if dice.random() < 0.5:
            body["else"] = dice.choice([7, "other"])
        parameters[chosen] = body
    spec["parameters"] = parameters
    if dice.random() < 0.5:
        spec["exclude"] = [{name: dice.choice(list_values(parameters[name])) for name in dice.sample(names, 2)}]
    if dice.random() < 0.4:
        spec["include"] = [{name: dice.choice([*list_values(parameters[name]), 9]) for name in names}]
    if dice.random() < 0.3:
        spec["run_cap"] = dice.randint(1, 6)
    return spec


def list_values(body: Any) -> list[Any]:
    """Return the values of a parameter, however it is written."""
    found: list[Any] = body["values"] if isinstance(body, dict) else body
    return found


def is_met(condition: str, job: Job) -> bool:
    """Say whether `NAME == VALUE` holds."""
    name, _, text = condition.partition(" == ")
    return bool(job[name] == json.loads(text.replace("'", '"')))


def enumerate_jobs(spec: dict[str, Any]) -> list[Job]:
    """Return the jobs in their order: product, conditions, exclude, equal ones, cap, include."""
    parameters = spec["parameters"]
    groups = spec.get("zip", [])
    axes: list[list[Job]] = []
    for name in parameters:
        group = next((group for group in groups if name in group), [name])
        first = min(group, key=list(parameters).index)
        if name == first:
            columns = [list_values(parameters[each]) for each in group]
            axes.append([dict(zip(group, values, strict=True)) for values in zip(*columns, strict=True)])
    found: list[Job] = []
    for parts in product(*axes):
        crossed = {name: value for part in parts for name, value in part.items()}
        job: Job = {}
        for name, body in parameters.items():
            if not isinstance(body, dict) or is_met(body["when"], crossed):
                job[name] = crossed[name]
            elif "else" in body:
                job[name] = body["else"]
        out = any(
            all(name in job and job[name] == value for name, value in row.items()) for row in spec.get("exclude", [])
        )
        if not out and job not in found:
            found.append(job)
    found = found[: spec.get("run_cap")]
    return found + [row for row in spec.get("include", []) if row not in found]


def test_random_grids_are_those_of_a_naive_enumerator() -> None:
    tried = 0
    for seed in range(400):
        spec = draw_spec(random.Random(seed))
        expected = enumerate_jobs(spec)
        if not expected:
            continue
        tried += 1
        text = "\n".join(f"{field}: {json.dumps(value)}" for field, value in spec.items())
        made = jobs(text)
        assert [sorted(job.items()) for job in made] == [sorted(job.items()) for job in expected], text
    assert tried > 300


def test_the_enumerator_is_no_copy_of_what_it_checks() -> None:
    """A pair that varies together, written out by hand."""
    spec = {"parameters": {"a": [1, 2], "b": ["x"], "c": [3, 4]}, "zip": [["c", "a"]]}
    assert enumerate_jobs(spec) == [{"a": 1, "b": "x", "c": 3}, {"a": 2, "b": "x", "c": 4}]
    with pytest.raises(ValueError):
        enumerate_jobs({"parameters": {"a": [1, 2], "b": [1]}, "zip": [["a", "b"]]})
