"""Curves from metrics files: every value with its step, over attempts, whatever else stands in the files."""

from __future__ import annotations

from monkey.web.curves.curve_reading import join_curves, parse_curves


def line(step: int | None, **values: object) -> str:
    told = ",".join(f'"{name}":{value}' for name, value in values.items())
    return f'{{"t":1.0,"step":{"null" if step is None else step},"m":{{{told}}}}}\n'


def test_values_keep_their_steps_and_garbage_is_passed_over() -> None:
    text = (
        line(3, loss=1) + "garbage\n" + line(5, loss='"nan"', acc=0.5) + line(None, acc=0.75) + line(9, loss="1" * 400)
    )
    found = parse_curves({"metrics/0.jsonl": text.encode()})
    assert list(found.curves["acc"].steps) == [5, 1] and list(found.curves["acc"].values) == [0.5, 0.75]
    steps, values = found.curves["loss"]
    assert list(steps) == [3, 5] and values[0] == 1 and values[1] != values[1]
    assert found.first_step == 3


def test_a_later_attempt_takes_the_place_of_what_it_does_again() -> None:
    first = parse_curves({"a": "".join(line(at, loss=at) for at in range(6)).encode()})
    second = parse_curves({"a": "".join(line(at, loss=10 * at) for at in range(4, 8)).encode()})
    joined = join_curves([first, second])["loss"]
    assert list(joined.steps) == list(range(8)) and list(joined.values) == [0, 1, 2, 3, 40, 50, 60, 70]
