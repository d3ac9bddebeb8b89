"""Every way to declare a parameter, and what is wrong with the others."""

from __future__ import annotations

from typing import Any

import pytest

from monkey.spec.parameters.parameters import Parameter
from monkey.spec.parameters.ranges import count_values
from monkey.spec.parameters.sampling import Distribution
from tests.unit.spec.making import jobs, problem, problems, spec


def declared(form: str) -> Parameter:
    return spec(f"method: random\nrun_cap: 1\nparameters:\n  p: {form}\n").parameters["p"]


def values(form: str) -> list[Any]:
    return [job["p"] for job in jobs(f"parameters:\n  p: {form}\n")]


@pytest.mark.parametrize(
    "form, expected",
    [
        ("[1, a, 0.5, true, null, [1], {a: b}]", [1, "a", 0.5, True, None, [1], {"a": "b"}]),
        ("3", [3]),
        ("adam", ["adam"]),
        ("false", [False]),
        ("{value: null}", [None]),
        ("{value: {a: [1]}}", [{"a": [1]}]),
        ("{values: [1, 2]}", [1, 2]),
        ("{value: 1, distribution: constant}", [1]),
        ("{values: [1, 2], distribution: categorical}", [1, 2]),
        ("{grid_search: [1, 2]}", [1, 2]),
        ("{choice: [1, 2]}", [1, 2]),
        ("{range: [0, 3]}", [0, 1, 2]),
        ("{range: [0, 10, 4]}", [0, 4, 8]),
        ("{range: [3, 0, -1]}", [3, 2, 1]),
        ("{range: [0, 0.5, 0.1]}", [0.0, 0.1, 0.2, 0.3, 0.4]),
        ("{range: [1, 0, -0.25]}", [1.0, 0.75, 0.5, 0.25]),
        ("{min: 1, max: 3}", [1, 2, 3]),
        ("{min: 0.1, max: 0.3, q: 0.1}", [0.1, 0.2, 0.3]),
        ("{quniform: [4, 12, 4]}", [4, 8, 12]),
        ("{randint: 3}", [0, 1, 2]),
        ("[1, 1.0, true, '1']", [1, 1.0, True, "1"]),
        ("[0.0, -0.0]", [0.0, -0.0]),
    ],
)
def test_a_grid_tries_these(form: str, expected: list[Any]) -> None:
    assert [(type(v), repr(v)) for v in values(form)] == [(type(v), repr(v)) for v in expected]


@pytest.mark.parametrize(
    "form, expected",
    [
        ("{min: 0.1, max: 1}", Distribution("uniform", 0.1, 1)),
        ("{min: 1, max: 5}", Distribution("int_uniform", 1, 5)),
        ("{distribution: uniform, min: 0, max: 1}", Distribution("uniform", 0, 1)),
        ("{distribution: log_uniform_values, min: 0.1, max: 1}", Distribution("log_uniform_values", 0.1, 1)),
        ("{distribution: int_uniform, min: 1.0, max: 5}", Distribution("int_uniform", 1, 5)),
        ("{distribution: normal}", Distribution("normal")),
        ("{distribution: normal, mu: 3, sigma: 0.5}", Distribution("normal", mu=3, sigma=0.5)),
        ("{distribution: log_normal, mu: -3}", Distribution("log_normal", mu=-3)),
        ("{distribution: q_uniform, min: 0, max: 9, q: 3}", Distribution("q_uniform", 0, 9, q=3)),
        (
            "{distribution: q_log_uniform_values, min: 1, max: 9, q: 2}",
            Distribution("q_log_uniform_values", 1, 9, q=2),
        ),
        ("{distribution: q_normal, q: 0.5}", Distribution("q_normal", q=0.5)),
        ("{distribution: q_log_normal, q: 2}", Distribution("q_log_normal", q=2)),
        ("{uniform: [0, 1]}", Distribution("uniform", 0, 1)),
        ("{loguniform: [1e-4, 1e-1]}", Distribution("log_uniform_values", 1e-4, 0.1)),
        ("{distribution: loguniform, min: 1e-4, max: 1e-1}", Distribution("log_uniform_values", 1e-4, 0.1)),
        ("{quniform: [0, 1, 0.5]}", Distribution("q_uniform", 0, 1, q=0.5)),
        ("{qloguniform: [1, 8, 2]}", Distribution("q_log_uniform_values", 1, 8, q=2)),
        ("{randint: [0, 10]}", Distribution("int_uniform", 0, 9)),
        ("{distribution: randint, min: 0, max: 10}", Distribution("int_uniform", 0, 9)),
        ("{qrandint: [0, 10, 5]}", Distribution("qrandint", 0, 10, q=5)),
        ("{lograndint: [1, 10]}", Distribution("lograndint", 1, 9, q=1)),
        ("{qlograndint: [1, 10, 2]}", Distribution("qlograndint", 1, 10, q=2)),
        ("{randn: [1, 2]}", Distribution("normal", mu=1, sigma=2)),
        ("{randn: []}", Distribution("normal")),
        ("{qrandn: [1, 2, 0.5]}", Distribution("q_normal", mu=1, sigma=2, q=0.5)),
    ],
)
def test_distributions_and_ray_s_names(form: str, expected: Distribution) -> None:
    assert declared(form).distribution == expected


@pytest.mark.parametrize(
    "form, column, message, hint",
    [
        ("", 3, "expected a parameter, found nothing", "{value: null}"),
        ("[]", 6, "expected at least one value", "remove"),
        ("{}", 6, "expected the parameter's values, found none", "write a list"),
        ("{values: 3}", 15, "expected a list of values, found 3", "{value: a}"),
        ("{vlaues: [3]}", 7, "unknown key 'vlaues'", "did you mean 'values'?"),
        ("{lr: [3]}", 7, "unknown key 'lr'", "stand under 'parameters:'"),
        ("{values: [1], value: 2}", 20, "'value' cannot stand beside 'values'", "write a list"),
        ("{values: [1], min: 2}", 20, "'min' cannot stand beside 'values'", "write a list"),
        ("{values: [1, 2], probabilities: [1]}", 38, "2 values, but 1 probabilities", "one for each"),
        ("{values: [1, 2], probabilities: [1, 1]}", 38, "these sum to 2", ""),
        ("{values: [1, 2], probabilities: [2, -1]}", 38, "must not be negative", ""),
        ("{values: [1], probabilities: 1}", 35, "expected a list of numbers, found 1", "one for each"),
        ("{min: 0, max: 1, probabilities: [1]}", 23, "'probabilities' needs 'values'", "list the values"),
        ("{distribution: categorical}", 21, "categorical needs 'values'", "values: …"),
        ("{distribution: constant}", 21, "constant needs 'value'", "value: …"),
        ("{min: 0}", 6, "uniform needs 'max'", "max: 9"),
        ("{min: 2, max: 1}", 20, "expected min < max, found 2 and 1", "swap"),
        ("{lograndint: [2, 2]}", 19, "expected min < max, found 2 and 2", "swap them"),
        ("{randint: [3, 3]}", 16, "expected min < max, found 3 and 3", "swap them"),
        ("{distribution: log_uniform, min: -9, max: -2}", 21, "is ambiguous", "min: 0.0001234, max: 0.1353"),
        ("{distribution: log_uniform, min: 1, max: 2}", 21, "is ambiguous", "if 1 and 2 are the values, or"),
        ("{distribution: q_log_uniform, min: 1, max: 2, q: 1}", 21, "ambiguous", "q_log_uniform_values"),
        ("{distribution: log_uniform, min: a}", 21, "ambiguous", "log_uniform_values"),
        ("{distribution: loguniform, min: 0, max: 2}", 38, "a logarithm needs min > 0, found 0", "not their exponents"),
        ("{distribution: lognorm}", 21, "unknown distribution 'lognorm'", "did you mean 'lognormal'?"),
        ("{normal: [0, 1]}", 7, "unknown key 'normal'", "write {distribution: normal, mu: 0, sigma: 1}"),
        ("{distribution: foo}", 21, "unknown distribution", "randn, uniform"),
        ("{distribution: beta}", 21, "the distribution 'beta' is not there yet", "use one of"),
        ("{distribution: [a]}", 21, "expected a distribution's name, found a list", "uniform"),
        ("{distribution: normal, min: 1}", 29, "normal has no 'min'", "{distribution: normal, mu: 0, sigma: 1}"),
        ("{distribution: normal, sigma: 0}", 36, "expected sigma > 0", "standard deviation"),
        ("{distribution: log_normal, mu: 1000}", 37, "of the logarithm", "lower"),
        ("{mu: 1}", 6, "expected a distribution with 'mu'", "distribution: normal"),
        ("{min: '1', max: 2}", 12, "expected a number for 'min', found the text '1'", "quotes"),
        ("{min: true, max: 2}", 12, "expected a number for 'min', found true", ""),
        ("{distribution: int_uniform, min: 0.5, max: 2}", 39, "expected a whole number for 'min'", "uniform"),
        ("{distribution: uniform, min: -2e300, max: 2}", 35, "'min' is too large", "1e300"),
        ("{quniform: [0, 1, 0]}", 17, "expected q > 0, found 0", "step"),
        ("{quniform: [1, 0, 1]}", 17, "expected min < max, found 1 and 0", "swap"),
        ("{min: 0.0, max: 1, q: -1}", 28, "expected q > 0", "step"),
        ("{min: 0.1, max: 0.9, q: 1}", 30, "no multiple of q: 1", "smaller"),
        ("{min: 0, max: 1, q: 1e-300}", 26, "too fine", "larger"),
        ("{loguniform: 3}", 19, "expected [min, max], found 3", "{loguniform: [min, max]}"),
        ("{loguniform: [1, 2, 3]}", 19, "expected [min, max], found a list", "{loguniform: [min, max]}"),
        ("{range: 5}", 14, "expected [from, to] or [from, to, step], found 5", "{range: [0, 5]}"),
        ("{range: [0, a]}", 14, "expected [from, to]", "{range: [0, 5]}"),
        ("{range: [0, 5, 0]}", 21, "expected a step other than 0", ""),
        ("{range: [5, 0]}", 14, "the range [5, 0] is empty", ""),
        ("{values: [1], else: 2}", 20, "'else' needs a 'when'", "when"),
        ("{values: [1], when: 3}", 26, "expected a condition, found 3", "lr < 0.1"),
        ("{parameters: {q: [1]}, else: 2}", 29, "a group of parameters has no 'else'", "only"),
        ("{parameters: [q]}", 19, "expected a mapping of names to values", "lr:"),
        (f"[{'x' * 70_000}]", 6, "a value is longer than 64 KiB", "file"),
    ],
)  # fmt: skip
def test_what_is_no_parameter(form: str, column: int, message: str, hint: str) -> None:
    found = problem(f"method: random\nrun_cap: 1\nparameters:\n  p: {form}\n")
    assert message in found.message
    assert hint in (found.hint or "")
    assert (found.line, found.column) == (4, column)


@pytest.mark.parametrize(
    "name, hint",
    [
        ("learning-rate", "write learning_rate"),
        ("1st", "not first a digit"),
        ("a b", "write a_b"),
        ("''", "letters"),
        ("é", "letters"),
        ("not", "write not_"),
        ("a.not", "letters"),
        ("a..b", "letters"),
    ],
)
def test_names(name: str, hint: str) -> None:
    found = problem(f"parameters:\n  {name}: [1]\n")
    assert "cannot be a parameter's name" in found.message
    assert hint in (found.hint or "")


def test_python_s_keywords_may_be_names() -> None:
    text = "parameters: {lambda: [1, 2], x: {value: 1, when: 'lambda > 1'}}"
    assert jobs(text) == [{"lambda": 1}, {"lambda": 2, "x": 1}]


def test_groups_are_dotted_and_share_their_condition() -> None:
    text = """\
        parameters:
          name: [adam, sgd]
          sgd:
            when: name == 'sgd'
            parameters:
              momentum: [0, 0.9]
              nesterov: {value: true, when: sgd.momentum > 0}
          a.b: [1]
        """
    assert jobs(text) == [
        {"name": "adam", "a.b": 1},
        {"name": "sgd", "sgd.momentum": 0, "a.b": 1},
        {"name": "sgd", "sgd.momentum": 0.9, "sgd.nesterov": True, "a.b": 1},
    ]


def test_a_name_is_declared_once() -> None:
    assert "declared twice" in problem("parameters: {a.b: [1], a: {parameters: {b: [1]}}}").message
    assert "'a' is a parameter, so 'a.b' cannot lie in it" in problem("parameters: {a: [1], a.b: [1]}").message


@pytest.mark.parametrize(
    "text, message, hint",
    [
        ("parameters: {lr: {uniform: [0, 1]}}", "a grid cannot try all of a uniform", "method: random"),
        ("parameters: {lr: {values: [1, 2], probabilities: [0.5, 0.5]}}", "no use for probabilities", "run_cap"),
        ("parameters: {lr: [1, 2, 1]}", "1 stands twice in 'lr'", "repeat: 5"),
        ("parameters: {python: [3.10, 3.1]}", "3.1 stands twice in 'python'", 'in quotes where they are texts'),
        ("method: random\nrun_cap: 3\nparameters: {lr: {grid_search: [1]}}", "needs method: grid", "choice"),
        ("method: random\nrun_cap: 3\nparameters: {a: {uniform: [0, 1]}, b: [1]}\nzip: [[a, b]]", "no list", ""),
    ],
)  # fmt: skip
def test_what_a_method_cannot_do(text: str, message: str, hint: str) -> None:
    found = problem(text)
    assert message in found.message
    assert hint in (found.hint or "")


def test_all_values_of_a_job_must_fit_into_one_variable() -> None:
    long = "x" * 50_000
    assert "96 KiB together" in problem(f"parameters: {{a: {long}, b: {long}}}").message


def test_ranges_beyond_what_len_can_count() -> None:
    assert count_values(range(10**30)) == 10**30
    assert count_values(range(5, 0, -2)) == 3
    assert count_values(range(5, 0)) == 0
    assert len(jobs(f"method: random\nrun_cap: 9\nparameters: {{a: {{range: [0, {10**30}]}}}}")) == 9


def test_all_mistakes_of_a_parameter_are_told() -> None:
    found = problems("""\
        parameters:
          a: {min: x, max: y, when: 3, mux: 1}
          b: {values: [1], probabilities: [a], else: 3, when: "a >"}
          c: {parameters: {d: 1, e: {}}, else: 1, x: 2}
        """)
    assert [(p.line, p.message.split(",")[0]) for p in found] == [
        (2, "expected a number for 'min'"),
        (2, "expected a number for 'max'"),
        (2, "expected a condition"),
        (2, "unknown key 'mux'"),
        (3, "expected a list of numbers"),
        (4, "expected the parameter's values"),
        (4, "a group of parameters has no 'else'"),
        (4, "a group of parameters has no 'x'"),
    ]


def test_long_ranges_of_decimals_are_not_made() -> None:
    for step in ("1e-12", "1e-30"):
        found = problem(f"parameters: {{a: {{range: [0, 1, {step}]}}}}")
        assert found.message.startswith("expected at most 5,000,000 jobs, found")
        assert len(jobs(f"run_cap: 3\nmethod: random\nparameters: {{a: {{range: [0, 1, {step}]}}}}")) == 3
    text = "run_cap: 2\nparameters: {a: {range: [1, 0, -1e-12]}}\n"
    assert [job["a"] for job in jobs(text)] == [1.0, 0.999999999999]
    assert [job["a"] for job in jobs(text + "exclude: [{a: 1}]")] == [0.999999999999, 0.999999999998]
    assert "2 is not a value of 'a'" in problem(text + "exclude: [{a: 2}]").message


@pytest.mark.parametrize(
    ("form", "advised"),
    [
        ("{qrandint: [0, 10, 2.5]}", "{distribution: q_uniform, min: 0, max: 10, q: 2.5}"),
        ("{qlograndint: [1, 10, 2.5]}", "{distribution: q_log_uniform_values, min: 1, max: 10, q: 2.5}"),
        ("{lograndint: [0.5, 10]}", "{distribution: log_uniform_values, min: 0.5, max: 10}"),
        ("{randint: [0.5, 10]}", "{distribution: uniform, min: 0.5, max: 10}"),
    ],
)
def test_whole_numbers_that_are_none_have_a_form_with_the_same_numbers(form: str, advised: str) -> None:
    text = "method: random\nrun_cap: 9\nparameters:\n  a: {uniform: [0, 1]}\n  p: "
    found = problem(text + form)
    assert found.line == 5 and found.hint == f"write {advised}"
    assert len(jobs(text + advised)) == 9
