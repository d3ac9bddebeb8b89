"""Geometric grids: against numpy's geomspace, and against the loop of LIBSVM's grid.py."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spec.making import jobs, problem


def values(form: str) -> list[Any]:
    return [job["p"] for job in jobs(f"parameters: {{p: {form}}}\n")]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("{geomspace: [1e-4, 1e-1, 4]}", [1e-4, 1e-3, 1e-2, 1e-1]),
        ("{logspace: [1e-4, 1e-1, 4]}", [1e-4, 1e-3, 1e-2, 1e-1]),
        ("{geomspace: [1, 1e-6, 7]}", [1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6]),
        ("{geomspace: [16, 256, 5]}", [16, 32, 64, 128, 256]),
        ("{geomspace: [1, 1000000, 7]}", [1, 10, 100, 1000, 10000, 100000, 1000000]),
        ("{geomspace: [1, 1000.0, 4]}", [1.0, 10.0, 100.0, 1000.0]),
        ("{geomspace: [1, 4, 4]}", [1.0, 1.58740105196819947475, 2.51984209978974632953, 4.0]),
        ("{geomspace: [0.3, 0.7, 2]}", [0.3, 0.7]),
        ("{log2: [-5, 1, 2]}", [0.03125, 0.125, 0.5, 2.0]),
        ("{log2: [3, -15, -6]}", [8.0, 0.125, 2**-9, 2**-15]),
        ("{log2: [4, 8]}", [16, 32, 64, 128, 256]),
        ("{log2: [0, 1, 0.5]}", [1.0, 1.4142135623730951, 2.0]),
        ("{log2: [0, 0.95, 0.5]}", [1.0, 1.4142135623730951]),
        ("{log2: [-1000, -999]}", [2.0**-1000, 2.0**-999]),
        ("{log2: [52, 53]}", [2.0**52, 2.0**53]),
    ],
)
def test_exact_values_are_exact(form: str, expected: list[Any]) -> None:
    assert [(type(value), repr(value)) for value in values(form)] == [(type(v), repr(v)) for v in expected]


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.integers(2, 60))
@settings(max_examples=60, deadline=None)
def test_they_are_numpys(start: float, stop: float, count: int) -> None:
    if start == stop:
        return
    found = values(f"{{geomspace: [{start!r}, {stop!r}, {count}]}}")
    assert found == pytest.approx(list(numpy.geomspace(start, stop, count)), rel=1e-11)
    assert (found[0], found[-1]) == (start, stop)


def count_as_libsvm(begin: int, end: int, step: int) -> list[int]:
    """Return what `range_f` of LIBSVM's tools/grid.py returns."""
    found = []
    while not (begin > end if step > 0 else begin < end):
        found.append(begin)
        begin += step
    return found


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(-7, 7))
@settings(max_examples=60, deadline=None)
def test_powers_of_two_are_libsvms(begin: int, end: int, step: int) -> None:
    exponents = count_as_libsvm(begin, end, step) if step else []
    if exponents:
        assert values(f"{{log2: [{begin}, {end}, {step}]}}") == list(numpy.exp2(numpy.array(exponents, dtype=float)))
    else:
        assert "log2" in problem(f"parameters: {{p: {{log2: [{begin}, {end}, {step}]}}}}\n").message


def test_a_random_search_draws_from_them_and_zip_pairs_them() -> None:
    drawn = jobs("method: random\nrun_cap: 50\nparameters: {p: {geomspace: [1e-4, 1e-1, 4]}}\n")
    assert {job["p"] for job in drawn} == {1e-4, 1e-3, 1e-2, 1e-1}
    zipped = jobs("parameters: {p: {log2: [4, 6]}, q: [a, b, c]}\nzip: [[p, q]]\n")
    assert [tuple(job.values()) for job in zipped] == [(16, "a"), (32, "b"), (64, "c")]


@pytest.mark.parametrize(
    ("form", "message", "hint"),
    [
        ("{logspace: [-4, -1, 4]}", "logspace: are -4 and -1 the ends, or exponents", "geomspace: [0.0001, 0.1, 4]"),
        ("{logspace: [1, 3, 3]}", "logspace: are 1 and 3 the ends", "1000.0, 3]} or {geomspace: [1, 3, 3]}"),
        (
            "{geomspace: [-4, -1, 4]}",
            "geomspace: expected two different ends above 0, found -4 and -1",
            "the values, not their exp",
        ),
        ("{geomspace: [0, 1, 4]}", "geomspace: expected two different ends above 0, found 0 and 1", ""),
        ("{geomspace: [2, 2, 4]}", "geomspace: expected two different ends above 0, found 2 and 2", "{value: 1}"),
        ("{geomspace: [1, 2]}", "expected [start, stop, count], found a list", "{geomspace: [0.0001, 0.1, 4]}"),
        ("{geomspace: 3}", "expected [start, stop, count], found 3", ""),
        ("{geomspace: [1, 2, true]}", "expected [start, stop, count]", ""),
        ("{geomspace: [1, 2, 1]}", "geomspace: expected a count of 2 to 10,000, found 1", "third number"),
        ("{geomspace: [1, 2, 2.5]}", "geomspace: expected a count of 2 to 10,000, found 2.5", ""),
        ("{geomspace: [1, 2, 100000000]}", "geomspace: expected a count of 2 to 10,000, found 100000000", ""),
        ("{log2: [0, 5, 0]}", "log2: expected 1 to 10,000 powers from 0 to 5, found none or more in steps of 0", ""),
        ("{log2: [5, 0, 1]}", "log2: expected 1 to 10,000 powers from 5 to 0, found none", "another sign"),
        ("{log2: [0, 2000, 1]}", "log2: expected exponents from -1000 to 1000, found 0 and 2000", ""),
        ("{log2: [0, 5, 1e-9]}", "log2: expected 1 to 10,000 powers", ""),
        ("{log2: [1]}", "expected [begin, end, step], found a list", "{log2: [-5, 1, 2]}"),
        ("{distribution: log_uniform_values, min: 1e-4, max: 0.1}", "a grid cannot", "{geomspace: [0.0001, 0.1, 5]}"),
    ],
)
def test_what_is_no_geometric_grid(form: str, message: str, hint: str) -> None:
    found = problem(f"parameters:\n  p: {form}\n")
    assert found.line == 2 and found.message.startswith(message), found.message
    assert hint in (found.hint or "")
