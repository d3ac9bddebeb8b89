"""Tables as loggers of Keras, Lightning and others write them."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from monkey_agent.collecting.csv_table import CsvTable


def read(text: str, *, over: bool = True) -> list[tuple[int | None, Mapping[str, float]]]:
    table = CsvTable()
    found = [*table.feed(text.encode()), *(table.feed(b"", over=True) if over else ())]
    return [(record.step, record.values) for record in found]


def test_keras() -> None:
    text = "epoch,accuracy,loss,val_loss\r\n0,0.5,0.25,NA\r\n1,0.75,nan,1e-3\r\n"
    assert str(read(text)) == str(
        [(0, {"accuracy": 0.5, "loss": 0.25}), (1, {"accuracy": 0.75, "loss": float("nan"), "val_loss": 0.001})]
    )


def test_lightning_has_empty_cells_and_steps_before_epochs() -> None:
    text = "epoch,step,train_loss,val_loss\n0,49,0.5,\n0,99,,0.25\n"
    assert read(text) == [(49, {"epoch": 0, "train_loss": 0.5}), (99, {"epoch": 0, "val_loss": 0.25})]


def test_other_tables() -> None:
    assert read("\ufeffloss;acc\n0.5;1\n0.25;2") == [(0, {"loss": 0.5, "acc": 1}), (1, {"loss": 0.25, "acc": 2})]
    assert read('"Iteration","a, b"\n3,"0.5"\n# note\n\nIteration,"a, b"\n4,hello\n5.0,2\n') == [
        *((3, {"a, b": 0.5}), (5, {"a, b": 2})),
    ]
    assert read("step,loss\n1,0.5\n2,0.", over=False) == [(1, {"loss": 0.5})]
    assert read("step,loss\nx,0.5\n") == [(None, {"loss": 0.5})]
    assert read("") == read("step,loss\n") == []


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for _, values in read(text):
        assert all(isinstance(value, int | float) for value in values.values())
