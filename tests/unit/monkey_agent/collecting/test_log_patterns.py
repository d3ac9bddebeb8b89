"""Patterns in what a job prints; and those that would take for ever."""

from __future__ import annotations

import time

from monkey_agent.collecting.log_patterns import LogPatterns


def found(patterns: list[str], text: str, *, over: bool = True) -> list[tuple[int | None, dict[str, float]]]:
    log = LogPatterns(patterns)
    return [(record.step, dict(record.values)) for record in log.feed(text.encode(), over=over)]


def test_groups_are_metrics_with_or_without_steps() -> None:
    assert found([r"val_acc=(?P<val_acc>\S+)"], "val_acc=0.5\nnothing\nval_acc=0.75, done\nval_acc=x\n") == [
        *((None, {"val_acc": 0.5}), (None, {"val_acc": 0.75})),
    ]
    pattern = r"Epoch (?P<epoch>\d+).* loss (?P<loss>\S+)( acc (?P<acc>\S+))?"
    assert found([pattern], "Epoch 1: loss 0.5\nEpoch 2: loss 0.25 acc 93%\n") == [
        *((1, {"loss": 0.5}), (2, {"loss": 0.25, "acc": 93})),
    ]


def test_a_step_holds_for_the_lines_below_it() -> None:
    text = "epoch 3\nloss=1\rloss=0.5\nepoch 4\nloss=0.25\n"
    assert found([r"epoch (?P<step>\d+)", r"loss=(?P<loss>\S+)"], text) == [
        *((3, {"loss": 1}), (3, {"loss": 0.5}), (4, {"loss": 0.25})),
    ]


def test_names_may_be_found_too_as_in_what_trainers_print() -> None:
    line = "{'loss': 0.4931, 'grad_norm': 1.5, 'learning_rate': 2e-05, 'epoch': 0.02, 'kind': 'x'}\n"
    assert found([r"'(?P<name>\w+)': (?P<value>[-+.\w]+)"], line) == [
        (None, {"loss": 0.4931, "grad_norm": 1.5, "learning_rate": 2e-05, "epoch": 0.02}),
    ]


def test_lines_come_in_pieces_and_long_ones_are_cut() -> None:
    log = LogPatterns([r"a=(?P<a>\d+)"])
    assert not list(log.feed(b"x a=1"))
    assert [record.values for record in log.feed(b"2\na=3")] == [{"a": 12}]
    assert [record.values for record in log.feed(b" " * 5000)] == [{"a": 3}]
    assert not list(log.feed(b"a=4" * 5000)) and not list(log.feed(b" a=5\n"))
    assert [record.values for record in log.feed(b"a=6", over=True)] == [{"a": 6}]


def test_a_pattern_that_takes_too_long_is_given_up_and_the_others_stay() -> None:
    started = time.process_time()
    log = LogPatterns([r"(?P<slow>(a+)+)$", r"b=(?P<b>\d+)"])
    records = [record for _ in range(100) for record in log.feed(b"a" * 40 + b"! b=1\n")]
    assert [record.values for record in records] == [{"b": 1}] * 100
    assert len(log.notes) == 1 and "is given up" in log.notes[0]
    assert time.process_time() - started < 1.5
