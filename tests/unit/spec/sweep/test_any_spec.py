"""Hypothesis over whole specs: whatever is in a file, it is read or refused with places, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from monkey.errors import SpecError
from monkey.spec.command.command import compile_command
from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.parameters.parameters import PARAMETER_FORMS, PARAMETER_KEYS
from monkey.spec.sweep.expand import expand_spec
from monkey.spec.sweep.load import parse_spec
from monkey.spec.sweep.models import Spec

NAMES = ["a", "b", "lr", "o.x", "lambda", "l-r", "not"]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 10)
    | st.sampled_from([10**30, -(10**50), 1e308, 1e-320, 0.5, -0.0])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "a > 1", "a", "{a}", "$(a)", "2h", "1GiB", ".."])
    | st.sampled_from(["log_uniform", "randint", "normal", "q_uniform"])
    | st.text(max_size=5)
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*PARAMETER_KEYS, "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)
numbers = st.lists(st.integers(-3, 9) | st.sampled_from([0.1, 0.5, 1e-5, 10**20, 1e300]), min_size=2, max_size=3)
parameter = (
    anything
    | st.dictionaries(st.sampled_from(PARAMETER_KEYS), anything, max_size=4)
    | st.tuples(st.sampled_from(PARAMETER_FORMS), numbers | anything).map(lambda pair: dict([pair]))
    | st.fixed_dictionaries(
        {
            "values": st.lists(scalars, min_size=1, max_size=3),
            "when": st.sampled_from(["a > 1", "b == a", "true", "lr", "a <"]),
        }
    )
    | st.fixed_dictionaries({"min": scalars, "max": scalars}, optional={"q": scalars, "distribution": scalars})
)
parameters = st.dictionaries(st.sampled_from(NAMES), parameter, max_size=4)
rows = st.lists(st.dictionaries(st.sampled_from(NAMES), scalars, max_size=3) | anything, max_size=3)
known = {
    "command": st.sampled_from(["true", "run {a} {lr}", "run {a} | x", ["run", "{a}"], "'", "a {b"]) | anything,
    "method": st.sampled_from(["grid", "random", "tpe"]) | anything,
    "run_cap": st.integers(1, 20) | anything,
    "zip": st.lists(st.lists(st.sampled_from(NAMES), max_size=3), max_size=2) | anything,
    "include": rows,
    "exclude": rows,
    "seed": st.integers(0, 9) | anything,
}
fields = {name: known.get(name, anything) for name in Spec.model_fields if name not in ("parameters", "command")}


def end_to_end(text: str) -> None:
    try:
        made = parse_spec(text, "it.yaml", Path("/nowhere"))
        table = expand_spec(made)[0]
    except SpecError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.line >= 1 and problem.column >= 1 and problem.message and str(problem)
        return
    ids = assign_job_ids(table, made.recipe("0")).ids
    assert len(set(ids)) == len(table)
    command = compile_command(made.command, made.parameters)
    for row in range(min(len(table), 3)):
        rendered = command.render(table.parameters(row))
        assert not any("\0" in word for word in (*rendered.argv, *rendered.env.values()))
        json.dumps(made.settings().to_json(), allow_nan=False)


@pytest.mark.slow
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries(
        {"parameters": parameters, "command": known["command"]},
        optional={"method": known["method"], "run_cap": known["run_cap"]},
    ),
    st.fixed_dictionaries({}, optional=fields),
)
@example({"parameters": {n: {"range": [0, 10**30]} for n in "ab"}, "command": "true"}, {"zip": [["a", "b"]]})
@example({"parameters": {"a": {"range": [0, 10**30]}}, "command": "true"}, {"exclude": [{"a": 0.5}]})
@example({"parameters": {"a": {"q": 1e-12, "min": 0, "max": 1}}, "command": "true"}, {"exclude": [{"a": 0.5}]})
def test_any_values_in_any_fields(core: dict[str, Any], more: dict[str, Any]) -> None:
    # JSON is YAML; lone surrogates, which UTF-8 files cannot hold, become escapes.
    end_to_end(json.dumps({**more, **core}))


TOP = st.sampled_from(["name", "command", "parameters", "zip", "include", "env", "datasets", "metric", "x"])


@settings(max_examples=200)
@given(st.lists(st.tuples(TOP, st.text(st.sampled_from(list("ab{}[]:,'\"&* \n-|>!1.")), max_size=12)), max_size=5))
def test_any_text_in_any_fields(lines: list[tuple[str, str]]) -> None:
    end_to_end("\n".join(f"{key}: {value}" for key, value in lines))


@settings(max_examples=100)
@given(anything)
def test_any_top(top: Any) -> None:
    end_to_end(json.dumps(top))
