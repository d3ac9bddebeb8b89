"""What tells one failure from another: words do, and numbers, paths, addresses and parameters do not."""

from __future__ import annotations

import pytest

from monkey.results.failure_kinds import normalize_failure
from monkey.spec.job.recipe import LOG_ELSEWHERE

SAME = [
    ("RuntimeError: loss 0.31 at step 12", "RuntimeError: loss 1e-05 at step 9000"),
    ("<Net object at 0x7f8d0eba4170>", "<Net object at 0xAB12>"),
    ("run 5b1c2f09-aa11-4c1e-9d0e-0123456789ab died", "run 00000000-bbbb-4c1e-9d0e-ffffffffffff died"),
    ("No such file: '/tmp/a.1/x.csv'", "No such file: 'data/other/y.csv'"),
    ("see https://errors.example/3?a=b", "see https://errors.example/4"),
    ("shapes (3, 4) and (4,)", "shapes (30,) and (1, 2, 3)"),
    ("checkpoint 2f9be3c41d0a missing", "checkpoint 0a9be3c41d0b missing"),
    ("could not pull x: unknown", f"could not pull x: unknown ({LOG_ELSEWHERE} {'a' * 16})"),
]
OTHER = [
    ("KeyError: 'lr'", "KeyError: 'momentum'"),
    ("ValueError: 3", "TypeError: 3"),
    ("out of memory", "out of time"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_what_varies_between_jobs_is_not_another_failure(one: str, two: str) -> None:
    assert normalize_failure(one) == normalize_failure(two)


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_other_words_are_another_failure(one: str, two: str) -> None:
    assert normalize_failure(one) != normalize_failure(two)


def test_a_parameter_s_value_is_no_part_of_what_went_wrong() -> None:
    said = [normalize_failure(f"no model called {name}!", {"model": name, "x": "o"}) for name in ("resnet", "vit.base")]
    assert said == ["no model called #!"] * 2
    assert normalize_failure("a net of nets", {"model": "net"}) == "a # of nets", (
        "whole words, or every letter would be one"
    )
