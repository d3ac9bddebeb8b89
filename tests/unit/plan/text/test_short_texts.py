"""Texts that are cut: those that differ stay distinct, and no more of them is kept than that takes."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from monkey.plan.text.describe import format_value, make_value_format
from monkey.plan.text.short_texts import measure_width, shorten_column, shorten_texts

#: Texts that begin and end alike: where they are cut, they are easily the same.
_PARTS = st.lists(st.sampled_from(["a", "b", "…", "…a", "x" * 40, "é", "漢", "e\u0301"]), max_size=6).map("".join)
_TEXTS = st.lists(st.one_of(_PARTS, st.text(max_size=60)), unique=True, max_size=12)
_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _PARTS, st.text()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)


@given(_TEXTS, st.integers(1, 40))
@example(["x" * 50 + "a", "x" * 50 + "b", "x" * 31 + "…"], 32)
@example(["a" * 9 + "…" + "b" * 9, "a" * 40 + "b" * 40, "a" * 41 + "b" * 40], 19)
def test_distinct_texts_have_distinct_short_forms_that_a_reader_finds_again(texts: list[str], width: int) -> None:
    short = shorten_texts(texts, width)
    assert list(short) == texts and len(set(short.values())) == len(texts)
    for text, shown in short.items():
        # What is left stands in the text, in its order.
        assert re.fullmatch(".*".join(map(re.escape, shown.split("…"))), text, re.DOTALL)
        if measure_width(text) <= width:
            assert shown == text


@given(_TEXTS, st.integers(8, 20), st.integers(0, 60))
def test_a_column_that_may_be_wider_is_never_wider_than_that(texts: list[str], least: int, more: int) -> None:
    narrow = max(map(measure_width, shorten_column(texts, least)), default=0)
    width = max(narrow, least) + more
    wide = shorten_column(texts, width, least)
    assert len(set(wide)) == len(texts)
    assert all(measure_width(text) <= width for text in wide)


@given(st.lists(_VALUES, max_size=10))
def test_distinct_values_of_a_parameter_have_distinct_texts_without_credentials(values: list[object]) -> None:
    import json

    spelled = {json.dumps(value, sort_keys=True): value for value in values}
    # Order of keys is no difference of jobs.
    written = {text: json.loads(text) for text in spelled}
    whole = {format_value(value) for value in written.values()}
    text = make_value_format(written.values())
    assert "****" in "".join(whole) or len(whole) == len(written)
    assert len({text(value) for value in written.values()}) == len(whole)


def test_models_that_differ_at_their_ends_keep_their_ends() -> None:
    models = ["mistralai/Mistral-7B-Instruct-v0.2", "mistralai/Mistral-7B-Instruct-v0.3", "short"]
    assert [*shorten_texts(models, 32).values()] == [
        "mistralai/Mistra…B-Instruct-v0.2",
        "mistralai/Mistra…B-Instruct-v0.3",
        "short",
    ]
    # Of those that differ elsewhere, as much is shown as tells them apart.
    paths = ["a" * 15 + "1" + "b" * 60, "a" * 15 + "2" + "b" * 60]
    first, second = shorten_texts(paths, 20).values()
    assert first != second and "…" in first and len(first) < 50
